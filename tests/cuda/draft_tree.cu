#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/grow_tree.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::draft;
using namespace tooldecode::cuda;

// Not all functions are called, which is a warning in an unnamed namespace.
namespace draft_tree_test {

constexpr std::size_t vocabulary = 2000;

/// A head that computes nothing: a hidden state is the index of a row of top tokens.
struct ListHead {
  std::vector<TopTokens> rows;

  std::size_t vocabulary_size() const { return vocabulary; }
  std::size_t hidden_size() const { return 1; }
  std::size_t size() const { return vocabulary; }
  TokenId token(std::size_t i) const { return static_cast<TokenId>(i); }
  void fill_logits(std::span<const float>, std::span<float>) const {}
  ListHead with(std::span<const TokenId>) const { return *this; }
  TokenLogits project(std::span<const float>, std::span<const std::uint32_t>) const { return {}; }
  std::vector<TopTokens> project_topk(std::span<const float> hidden, std::size_t,
                                      std::span<const ConstMaskView>) const {
    std::vector<TopTokens> result;
    for (const float row : hidden) result.push_back(rows[static_cast<std::size_t>(row)]);
    return result;
  }
};
static_assert(DraftHead<ListHead>);

}  // namespace draft_tree_test

namespace {

/// The trees of a batch in device memory.
struct Trees {
  explicit Trees(std::size_t sequences)
      : tokens(sequences * max_nodes),
        parents(sequences * max_nodes),
        sizes(sequences),
        ancestors(sequences * max_nodes),
        positions(sequences * max_nodes),
        scores(sequences * max_nodes) {}

  [[nodiscard]] DraftTreeView view() const {
    return {.tokens    = tokens.data(),
            .parents   = parents.data(),
            .ancestors = ancestors.data(),
            .positions = positions.data(),
            .scores    = scores.data(),
            .sizes     = sizes.data()};
  }

  DeviceBuffer<TokenId> tokens;
  DeviceBuffer<std::int32_t> parents, sizes;
  DeviceBuffer<std::uint64_t> ancestors;
  DeviceBuffer<std::int64_t> positions;
  DeviceBuffer<float> scores;
};

using draft_tree_test::ListHead, draft_tree_test::vocabulary;

enum class Distribution { smooth, tied, sparse, strange };

/// Up to k tokens, best first, with a log_sum_exp that a float represents.
TopTokens random_top(std::size_t k, Distribution distribution, std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<float>(random() % n); };
  TopTokens top;
  std::set<TokenId> seen;
  const std::size_t count = distribution == Distribution::sparse ? random() % (k + 1) : k;
  while (top.tokens.size() < count) {
    const auto token = static_cast<TokenId>(random() % vocabulary);
    if (!seen.insert(token).second) continue;
    const float logit =
        distribution == Distribution::smooth ? -below(1 << 20) / 65'536 : -below(3) / 2;
    top.tokens.push_back({token, logit});
  }
  std::sort(top.tokens.begin(), top.tokens.end(), [](const ScoredToken& a, const ScoredToken& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  });
  top.log_sum_exp = static_cast<double>(below(4) / 4);
  if (distribution == Distribution::strange && !top.tokens.empty()) {
    // Values that are not log probabilities count as certain or as almost impossible.
    if (random() % 3 == 0) top.tokens.back().logit = -3e38F;
    if (random() % 3 == 0) top.tokens.front().logit = 9;
    if (random() % 4 == 0) top.tokens.back().logit = std::numeric_limits<float>::quiet_NaN();
  }
  return top;
}

/// Rows of top tokens in the levels before `level`.
std::size_t rows_before(const DraftTreeOptions& options, int level) {
  return level == 0 ? 0 : static_cast<std::size_t>(1 + (level - 1) * options.width);
}

void check_growth(const DraftTreeOptions& options, Distribution distribution, unsigned seed) {
  constexpr std::size_t sequences = 3;
  INFO("depth " << options.depth << ", width " << options.width << ", children " << options.children
                << ", budget " << options.budget << ", least " << options.min_probability
                << ", distribution " << static_cast<int>(distribution) << ", seed " << seed);
  std::mt19937 random(seed);
  const auto depth       = static_cast<std::size_t>(options.depth);
  const auto width       = static_cast<std::size_t>(options.width);
  const auto children    = static_cast<std::size_t>(options.children);
  const std::size_t rows = rows_before(options, options.depth);

  std::vector<ListHead> heads(sequences);
  std::vector<std::vector<std::vector<FrontierNode>>> frontiers(sequences);  // of levels 1, ...
  std::vector<std::vector<TokenId>> frontier_tokens(sequences);
  std::vector<DraftTree> trees;
  std::vector<TokenId> roots;
  std::vector<std::int32_t> lengths;
  const Unconstrained any(vocabulary);
  for (std::size_t b = 0; b < sequences; ++b) {
    for (std::size_t row = 0; row < rows; ++row) {
      heads[b].rows.push_back(random_top(children, distribution, random));
    }
    roots.push_back(static_cast<TokenId>(random() % vocabulary));
    lengths.push_back(static_cast<std::int32_t>(random() % 100'000));
    DraftCandidates candidates(any, any.initial(), roots[b], depth);
    std::vector<float> states;
    grow_tree(
        candidates, heads[b], depth, width, options.min_probability,
        [&](std::size_t) { return children; },
        [&](std::size_t level, std::span<const FrontierNode> frontier) {
          frontiers[b].emplace_back(frontier.begin(), frontier.end());
          states.clear();
          for (std::size_t i = 0; i < frontier.size(); ++i) {
            states.push_back(static_cast<float>(rows_before(options, static_cast<int>(level)) + i));
            frontier_tokens[b].push_back(candidates.token(frontier[i].node));
          }
          return std::span<const float>(states);
        });
    frontiers[b].resize(depth);
    trees.push_back(
        candidates.best(static_cast<std::size_t>(options.budget) + 1, options.min_probability));
  }

  DraftGrowth growth{.options = options, .sequences = sequences};
  const test::Scratch memory(draft_growth_bytes(growth));
  growth.memory = memory;
  const DeviceBuffer<TokenId> tokens(sequences * width);
  const DeviceBuffer<std::int32_t> parents(sequences * width), sizes(sequences);
  const DeviceBuffer<std::uint64_t> ancestors(sequences * width);
  const bool has_masks = (options.depth - 1) * options.width <= max_nodes;
  const DraftFrontierView frontier{.tokens    = tokens.data(),
                                   .parents   = parents.data(),
                                   .ancestors = has_masks ? ancestors.data() : nullptr,
                                   .sizes     = sizes.data()};
  std::vector<std::size_t> read(sequences);
  std::vector<std::vector<std::uint64_t>> masks(sequences);
  for (std::size_t level = 0; level < depth; ++level) {
    const std::size_t here = level == 0 ? 1 : width;
    std::vector<TokenId> top_tokens;
    std::vector<float> logits, sums;
    for (std::size_t b = 0; b < sequences; ++b) {
      for (std::size_t i = 0; i < here; ++i) {
        const TopTokens& top = heads[b].rows[rows_before(options, static_cast<int>(level)) + i];
        for (std::size_t t = 0; t < children; ++t) {
          const bool is_there = t < top.tokens.size();
          top_tokens.push_back(is_there ? top.tokens[t].token : -1);
          logits.push_back(is_there ? top.tokens[t].logit
                                    : -std::numeric_limits<float>::infinity());
        }
        sums.push_back(static_cast<float>(top.log_sum_exp));
      }
    }
    const DeviceBuffer<TokenId> device_tokens(top_tokens);
    const DeviceBuffer<float> device_logits(logits), device_sums(sums);
    const bool is_last = level + 1 == depth;
    grow_level(growth, static_cast<int>(level),
               {device_tokens.data(), device_logits.data(), device_sums.data()},
               is_last ? DraftFrontierView{} : frontier, nullptr);
    if (is_last) break;
    const auto got_tokens    = tokens.download();
    const auto got_parents   = parents.download();
    const auto got_ancestors = ancestors.download();
    const auto got_sizes     = sizes.download();
    for (std::size_t b = 0; b < sequences; ++b) {
      INFO("level " << level << ", sequence " << b);
      const auto& expected = frontiers[b][level + 1];
      REQUIRE(got_sizes[b] == static_cast<int>(expected.size()));
      std::vector<std::uint64_t> next(width);
      if (level == 0) read[b] = 1;
      for (std::size_t i = 0; i < width; ++i) {
        const bool is_there = i < expected.size();
        CHECK(got_tokens[b * width + i] == (is_there ? frontier_tokens[b][read[b]++] : -1));
        CHECK(got_parents[b * width + i] == (is_there ? static_cast<int>(expected[i].parent) : 0));
        if (!has_masks) continue;
        if (is_there) {
          next[i] = (level == 0 ? 0 : masks[b][expected[i].parent]) | std::uint64_t{1}
                                                                          << (level * width + i);
        }
        CHECK(got_ancestors[b * width + i] == next[i]);
      }
      masks[b] = next;
    }
  }

  const DeviceBuffer<TokenId> device_roots(roots);
  const DeviceBuffer<std::int32_t> device_lengths(lengths);
  const Trees got(sequences);
  fill_best_tree(growth, device_roots.data(), device_lengths.data(), got.view(), nullptr);
  const auto got_tokens    = got.tokens.download();
  const auto got_parents   = got.parents.download();
  const auto got_ancestors = got.ancestors.download();
  const auto got_positions = got.positions.download();
  const auto got_scores    = got.scores.download();
  const auto got_sizes     = got.sizes.download();
  for (std::size_t b = 0; b < sequences; ++b) {
    INFO("tree " << b);
    const DraftTree& tree = trees[b];
    REQUIRE(got_sizes[b] == static_cast<int>(tree.size()));
    for (std::size_t i = 0; i < max_nodes; ++i) {
      INFO("node " << i);
      const std::size_t at = b * max_nodes + i;
      const bool is_there  = i < tree.size();
      CHECK(got_tokens[at] == (is_there ? tree.token(i) : -1));
      CHECK(got_parents[at] == (is_there ? static_cast<int>(tree.parent(i)) : 0));
      CHECK(got_ancestors[at] == (is_there ? tree.ancestors()[i] : 0));
      CHECK(got_positions[at] ==
            lengths[b] + (is_there ? static_cast<std::int64_t>(tree.depth(i)) : 0));
      CHECK(got_scores[at] == (is_there ? tree.score(i) : 0));
    }
  }
}

}  // namespace

TEST_CASE("grow_level and fill_best_tree build the trees of the host") {
  test::on_device([] {
    unsigned seed = 0;
    for (const Distribution distribution :
         {Distribution::smooth, Distribution::tied, Distribution::sparse, Distribution::strange}) {
      for (const int width : {1, 4, 10}) {
        for (const int children : {1, 4, 10}) {
          ++seed;
          const int budget = std::vector{0, 1, 59, 63}[seed % 4];
          check_growth({.depth    = 1 + static_cast<int>(seed % 4),
                        .width    = width,
                        .children = children,
                        .budget   = budget},
                       distribution, seed);
        }
      }
    }
  });
}

TEST_CASE("grow_level and verify_trees ignore paths below the least probability") {
  test::on_device([] {
    for (const double minimum : {0.0, 0.02, 0.2, 1.0}) {
      for (const Distribution distribution : {Distribution::smooth, Distribution::tied}) {
        check_growth(
            {.depth = 4, .width = 4, .children = 4, .budget = 19, .min_probability = minimum},
            distribution, 7);
      }
    }
  });
}

TEST_CASE("grow_level and fill_best_tree handle many candidates, 63 levels and none") {
  test::on_device([] {
    check_growth({.depth = 6, .width = 10, .children = 10, .budget = 59}, Distribution::tied, 1);
    check_growth({.depth = 4, .width = 32, .children = 13, .budget = 63}, Distribution::smooth, 2);
    check_growth({.depth = 1, .width = 1, .children = 1100, .budget = 63}, Distribution::tied, 6);
    check_growth({.depth = 20, .width = 1, .children = 2, .budget = 32}, Distribution::smooth, 3);
    check_growth({.depth = 63, .width = 1, .children = 1, .budget = 63}, Distribution::smooth, 4);
    check_growth({.depth = 0, .width = 4, .children = 4, .budget = 59}, Distribution::smooth, 5);
  });
}

TEST_CASE("grow_level and fill_best_tree, a negative root: nothing grows") {
  test::on_device([] {
    const DeviceBuffer<TokenId> roots(std::vector<TokenId>{-1, 4});
    const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{0, 9});
    DraftGrowth growth{.options   = {.depth = 2, .width = 2, .children = 2, .budget = 4},
                       .sequences = 2,
                       .roots     = roots.data()};
    const test::Scratch memory(draft_growth_bytes(growth));
    growth.memory = memory;
    const DeviceBuffer<TokenId> tokens(4);
    const DeviceBuffer<std::int32_t> parents(4), sizes(2);
    const DeviceBuffer<std::uint64_t> ancestors(4);
    const Trees trees(2);
    const DeviceBuffer<TokenId> top_tokens(std::vector<TokenId>{1, 2, 1, 2, 1, 2, 1, 2});
    const DeviceBuffer<float> logits(std::vector<float>(8, -1.0F)), sums(4);
    const TopTokensView tops{top_tokens.data(), logits.data(), sums.data()};
    grow_level(growth, 0, tops, {tokens.data(), parents.data(), ancestors.data(), sizes.data()},
               nullptr);
    CHECK(sizes.download() == std::vector<std::int32_t>{0, 2});
    CHECK(tokens.download() == std::vector<TokenId>{-1, -1, 1, 2});
    CHECK(ancestors.download() == std::vector<std::uint64_t>{0, 0, 1, 2});
    grow_level(growth, 1, tops, {}, nullptr);
    fill_best_tree(growth, roots.data(), lengths.data(), trees.view(), nullptr);
    CHECK(trees.sizes.download() == std::vector<std::int32_t>{0, 5});
    const auto seen = trees.ancestors.download();
    CHECK(std::vector(seen.begin(), seen.begin() + max_nodes) ==
          std::vector<std::uint64_t>(max_nodes));
    CHECK(trees.tokens.download()[0] == -1);
    CHECK(trees.tokens.download()[max_nodes] == 4);
  });
}

TEST_CASE("grow_level and fill_best_tree throw for options and sizes out of range") {
  const auto code_of = [](const DraftTreeOptions& options) {
    try {
      static_cast<void>(draft_growth_bytes({.options = options, .sequences = 1}));
    } catch (const Error& error) {
      CHECK(error.code() == Errc::invalid_option);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(code_of({}).empty());
  CHECK(code_of({.depth = 64}) == "depth 64: must be from 0 to 63");
  CHECK(code_of({.depth = -1}) == "depth -1: must be from 0 to 63");
  CHECK(code_of({.width = 0}) == "width 0: must be from 1 to 4096");
  CHECK(code_of({.children = 0}) == "children 0: must be from 1 to 4096");
  CHECK(code_of({.budget = -1}) == "budget -1: must be from 0 to 63");
  CHECK(code_of({.budget = 64}) == "budget 64: must be from 0 to 63");
  CHECK(code_of({.min_probability = -0.5}) == "min_probability -0.5: must be from 0 to 1");
  CHECK(code_of({.depth = 2, .width = 409, .children = 10}) ==
        "depth 2: times width times children must give at most 4096 candidates");
  CHECK(code_of({.depth = 2, .width = 408, .children = 10}).empty());

  test::on_device([] {
    DraftGrowth growth{.sequences = 1};
    CHECK_THROWS_WITH(grow_level(growth, 0, {}, {}, nullptr), test::contains("workspace"));
    const test::Scratch memory(draft_growth_bytes(growth));
    growth.memory = memory;
    CHECK_THROWS_WITH(grow_level(growth, 6, {}, {}, nullptr), test::contains("level"));
    CHECK_THROWS_WITH(grow_level(growth, 0, {}, {}, nullptr), test::contains("tops"));
    CHECK_THROWS_WITH(fill_best_tree(growth, nullptr, nullptr, {}, nullptr),
                      test::contains("roots"));
    growth.sequences = 0;
    CHECK_NOTHROW(grow_level(growth, 0, {}, {}, nullptr));
    CHECK_NOTHROW(fill_best_tree(growth, nullptr, nullptr, {}, nullptr));
    growth             = {.options = {.depth = 9}, .sequences = 0};
    std::uint64_t mask = 0;
    CHECK_THROWS_WITH(grow_level(growth, 0, {}, {.ancestors = &mask}, nullptr),
                      test::contains("ancestors"));
  });
}
