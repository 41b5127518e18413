#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>

#include "data.cuh"
#include "questions.hpp"

namespace cuda_benchmark {

namespace {

namespace cuda = tooldecode::cuda;
using Half     = __nv_bfloat16;
using tooldecode::TokenId;

constexpr cuda::DraftTreeOptions tree_options{
    .depth = 6, .width = 10, .children = 10, .budget = 60};
constexpr int prefix = 512, key_heads = 8, head_size = 128;
constexpr int slots = prefix + cuda::max_nodes;

// The top tokens of one level, as from a head.
struct Level {
  int rows;  // per sequence
  std::vector<TokenId> tokens;
  std::vector<float> logits, sums;
  DeviceBuffer<TokenId> device_tokens;  // [B, rows, children]
  DeviceBuffer<float> device_logits, device_sums;

  Level(int sequences, int rows_, std::mt19937& random) : rows(rows_) {
    for (int row = 0; row < sequences * rows; ++row) {
      std::vector<float> row_logits;
      for (int i = 0; i < tree_options.children; ++i) {
        tokens.push_back(static_cast<TokenId>(random() % 3000 * 10) + i);
        row_logits.push_back(-4 * static_cast<float>(random() >> 8) * 0x1p-24F);
      }
      std::sort(row_logits.begin(), row_logits.end(), std::greater<>());
      logits.insert(logits.end(), row_logits.begin(), row_logits.end());
      sums.push_back(0.5F + static_cast<float>(random() >> 8) * 0x1p-24F);
    }
    device_tokens = DeviceBuffer<TokenId>(tokens);
    device_logits = DeviceBuffer<float>(logits);
    device_sums   = DeviceBuffer<float>(sums);
  }
  [[nodiscard]] cuda::TopTokensView view() const {
    return {device_tokens.data(), device_logits.data(), device_sums.data()};
  }
};

// A tree by the rules of EAGLE-2, built from sorted lists.
struct HostTree {
  std::vector<TokenId> tokens{0};
  std::vector<int> parents{0};
  std::vector<float> scores{0};

  HostTree(const std::vector<Level>& levels, std::size_t sequence) {
    std::vector<int> frontier{0};
    for (const Level& level : levels) {
      const std::size_t first = tokens.size();
      for (std::size_t place = 0; place < frontier.size(); ++place) {
        const std::size_t row = sequence * static_cast<std::size_t>(level.rows) + place;
        for (std::size_t i = 0; i < tree_options.children; ++i) {
          const std::size_t at = row * tree_options.children + i;
          tokens.push_back(level.tokens[at]);
          parents.push_back(frontier[place]);
          scores.push_back(scores[static_cast<std::size_t>(frontier[place])] +
                           std::min(0.0F, level.logits[at] - level.sums[row]));
        }
      }
      frontier = best(first, tree_options.width);
    }
    auto chosen = best(0, tree_options.budget + 1);
    std::sort(chosen.begin(), chosen.end());
    HostTree tree;
    for (const int node : chosen) {
      const auto n = static_cast<std::size_t>(node);
      tree.tokens.push_back(tokens[n]);
      tree.parents.push_back(
          static_cast<int>(std::find(chosen.begin(), chosen.end(), parents[n]) - chosen.begin()));
      tree.scores.push_back(scores[n]);
    }
    *this = std::move(tree);
  }

 private:
  HostTree() : tokens{}, parents{}, scores{} {}

  [[nodiscard]] std::vector<int> best(std::size_t first, int count) const {
    std::vector<int> nodes(tokens.size() - first);
    std::iota(nodes.begin(), nodes.end(), static_cast<int>(first));
    std::stable_sort(nodes.begin(), nodes.end(), [this](int a, int b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    nodes.resize(std::min(nodes.size(), static_cast<std::size_t>(count)));
    return nodes;
  }
};

class Round {
 public:
  Round(int sequences, int layers)
      : sequences_(sequences),
        growth_{.options = tree_options, .sequences = sequences},
        memory_(cuda::draft_growth_bytes(growth_)),
        rows_(static_cast<std::size_t>(sequences) * cuda::max_nodes),
        frontier_rows_(static_cast<std::size_t>(sequences) * tree_options.width),
        numbers_(normal_numbers<Half>(2 * static_cast<std::size_t>(layers) * layer_size(), 1, 31)) {
    std::mt19937 random(32);
    growth_.memory = memory_;
    for (int level = 0; level < tree_options.depth; ++level) {
      levels_.emplace_back(sequences, level == 0 ? 1 : tree_options.width, random);
    }
    for (int layer = 0; layer < layers; ++layer) {
      const auto part = 2 * static_cast<std::size_t>(layer);
      layers_.push_back({.keys        = numbers_.data() + part * layer_size(),
                         .values      = numbers_.data() + (part + 1) * layer_size(),
                         .slot_stride = key_heads * head_size,
                         .head_stride = head_size,
                         .page_stride = std::int64_t{slots} * key_heads * head_size});
    }
    const auto count = static_cast<std::size_t>(sequences);
    roots_           = DeviceBuffer<TokenId>(std::vector<TokenId>(count, 7));
    lengths_         = DeviceBuffer<std::int32_t>(std::vector<std::int32_t>(count, prefix));
    next_lengths_    = DeviceBuffer<std::int32_t>(count);
    sizes_           = DeviceBuffer<std::int32_t>(count);
    frontier_sizes_  = DeviceBuffer<std::int32_t>(count);
    verdicts_        = DeviceBuffer<cuda::TreeVerdict>(count);
    for (auto* buffer : {&tokens_, &choices_}) *buffer = DeviceBuffer<TokenId>(rows_);
    parents_            = DeviceBuffer<std::int32_t>(rows_);
    ancestors_          = DeviceBuffer<std::uint64_t>(rows_);
    positions_          = DeviceBuffer<std::int64_t>(rows_);
    scores_             = DeviceBuffer<float>(rows_);
    frontier_tokens_    = DeviceBuffer<TokenId>(frontier_rows_);
    frontier_parents_   = DeviceBuffer<std::int32_t>(frontier_rows_);
    frontier_ancestors_ = DeviceBuffer<std::uint64_t>(frontier_rows_);
  }

  void draft(cudaStream_t stream) const {
    const cuda::DraftFrontierView frontier{frontier_tokens_.data(), frontier_parents_.data(),
                                           frontier_ancestors_.data(), frontier_sizes_.data()};
    for (int level = 0; level < tree_options.depth; ++level) {
      cuda::grow_level(growth_, level, levels_[static_cast<std::size_t>(level)].view(), frontier,
                       stream);
    }
    cuda::fill_best_tree(growth_, roots_.data(), lengths_.data(), tree(), stream);
  }
  void verify(cudaStream_t stream) const {
    cuda::verify_trees(tree(), choices_.data(), verdicts_.data(), sequences_, stream);
  }
  // Writes the new lengths to another buffer, so that rounds can be repeated.
  void compact(cudaStream_t stream) const {
    cuda::compact_cache<Half>(layers_, {sequences_, key_heads, head_size}, verdicts_.data(),
                              lengths_.data(), stream);
    cuda::advance_lengths(verdicts_.data(), next_lengths_.data(), sequences_, stream);
  }
  void run(cudaStream_t stream) const {
    draft(stream);
    verify(stream);
    compact(stream);
  }

  // Bytes that a compaction reads and writes.
  [[nodiscard]] double compacted_bytes() const {
    double rows = 0;
    for (const auto& verdict : verdicts_.download()) rows += verdict.accepted;
    return 2 * rows * 2 * static_cast<double>(layers_.size()) * key_heads * head_size *
           sizeof(Half);
  }

  // Compares trees, verdicts, and the first and last layers exactly; sets the choices that make a
  // path.
  void check_all() {
    poison(tokens_);
    poison(verdicts_);
    draft(nullptr);
    cuda::check(cudaDeviceSynchronize());
    const auto tokens  = tokens_.download();
    const auto parents = parents_.download(), sizes = sizes_.download();
    const auto scores    = scores_.download();
    const auto ancestors = ancestors_.download();
    std::vector<TokenId> choices(rows_, -1);
    for (std::size_t b = 0; b < sizes.size(); ++b) {
      const HostTree tree(levels_, b);
      const std::size_t first = b * cuda::max_nodes;
      require(sizes[b] == static_cast<int>(tree.tokens.size()), "a tree's size");
      int deepest = 0;
      for (std::size_t i = 0; i < tree.tokens.size(); ++i) {
        require(i == 0 || tokens[first + i] == tree.tokens[i], "a node's token");
        require(parents[first + i] == tree.parents[i], "a node's parent");
        require(std::abs(scores[first + i] - tree.scores[i]) < 1e-4F, "a node's score");
        const auto parent = static_cast<std::size_t>(tree.parents[i]);
        require(ancestors[first + i] ==
                    (std::uint64_t{1} << i | (i == 0 ? 0 : ancestors[first + parent])),
                "a node's ancestors");
        if (depth_of(tree, static_cast<int>(i)) > depth_of(tree, deepest)) {
          deepest = static_cast<int>(i);
        }
      }
      // The drawn tokens lead to the parent of a deepest node, and then leave the tree.
      for (int node = tree.parents[static_cast<std::size_t>(deepest)]; node != 0;) {
        const int parent = tree.parents[static_cast<std::size_t>(node)];
        choices[first + static_cast<std::size_t>(parent)] =
            tree.tokens[static_cast<std::size_t>(node)];
        node = parent;
      }
    }
    choices_.upload(choices);
    const auto before = numbers_.download();
    verify(nullptr);
    compact(nullptr);
    cuda::check(cudaDeviceSynchronize());
    const auto after    = numbers_.download();
    const auto verdicts = verdicts_.download();
    for (std::size_t b = 0; b < verdicts.size(); ++b) {
      const auto& verdict     = verdicts[b];
      const std::size_t first = b * cuda::max_nodes;
      std::size_t node = 0, accepted = 0;
      for (std::size_t i = 1; i < static_cast<std::size_t>(sizes[b]); ++i) {
        if (parents[first + i] != static_cast<int>(node) ||
            tokens[first + i] != choices[first + node]) {
          continue;
        }
        node = i;
        require(verdict.path[accepted] == static_cast<int>(i), "a path");
        require(verdict.tokens[accepted] == tokens[first + i], "a path's token");
        ++accepted;
      }
      require(verdict.accepted == static_cast<int>(accepted) && accepted > 0, "a path's length");
      require(verdict.tokens[accepted] == choices[first + node], "the token after the path");
      for (const std::size_t part : {std::size_t{0}, 2 * layers_.size() - 1}) {
        const std::size_t row  = key_heads * head_size;
        const std::size_t base = part * layer_size() + (b * slots + prefix) * row;
        for (std::size_t i = 0; i < accepted; ++i) {
          const auto from = static_cast<std::size_t>(verdict.path[i]);
          for (std::size_t j = 0; j < row; ++j) {
            require(cuda::to_float(after[base + (1 + i) * row + j]) ==
                        cuda::to_float(before[base + from * row + j]),
                    "a row of the cache");
          }
        }
      }
    }
  }

 private:
  [[nodiscard]] std::size_t layer_size() const {
    return static_cast<std::size_t>(sequences_) * slots * key_heads * head_size;
  }
  [[nodiscard]] cuda::DraftTreeView tree() const {
    return {tokens_.data(),    parents_.data(), ancestors_.data(),
            positions_.data(), scores_.data(),  sizes_.data()};
  }
  static int depth_of(const HostTree& tree, int node) {
    int depth = 0;
    for (; node != 0; ++depth) node = tree.parents[static_cast<std::size_t>(node)];
    return depth;
  }

  int sequences_;
  cuda::DraftGrowth growth_;
  DeviceBuffer<std::byte> memory_;
  std::size_t rows_, frontier_rows_;
  DeviceBuffer<Half> numbers_;  // [layers, 2, B, slots, heads, D]
  std::vector<Level> levels_;
  std::vector<cuda::KeyValues<Half>> layers_;
  DeviceBuffer<TokenId> roots_, tokens_, choices_, frontier_tokens_;
  DeviceBuffer<std::int32_t> lengths_, next_lengths_, sizes_, parents_, frontier_sizes_,
      frontier_parents_;
  DeviceBuffer<std::uint64_t> ancestors_, frontier_ancestors_;
  DeviceBuffer<std::int64_t> positions_;
  DeviceBuffer<float> scores_;
  DeviceBuffer<cuda::TreeVerdict> verdicts_;
};

void measure(const Setup& setup, int sequences, int layers, Report& report) {
  Round round(sequences, layers);
  round.check_all();
  const std::string size = "B = " + std::to_string(sequences);
  const auto add         = [&](const char* kernel, double bytes, auto work) {
    report.add({.kernel  = kernel,
                        .numbers = "BF16",
                        .size    = size,
                        .timing  = time_calls(setup, 1, [&](int, cudaStream_t stream) { work(stream); }),
                        .floor   = bytes / setup.ceilings.copy_bandwidth});
  };
  add("draft trees, 6 levels, 60 nodes", 0, [&](cudaStream_t s) { round.draft(s); });
  add("verification of 60 nodes", 0, [&](cudaStream_t s) { round.verify(s); });
  add("compaction, 32 layers", round.compacted_bytes(), [&](cudaStream_t s) { round.compact(s); });
  add("round of these three", 0, [&](cudaStream_t s) { round.run(s); });
}

}  // namespace

void ask_draft_round(const Setup& setup, Report& report) {
  for (const int sequences : setup.is_small ? std::vector{2} : std::vector{1, 16}) {
    report.attempt("draft round, B = " + std::to_string(sequences),
                   [&] { measure(setup, sequences, setup.is_small ? 2 : 32, report); });
  }
}

}  // namespace cuda_benchmark
