#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/tree_attention.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

enum class Shape { random, chain, root_only };

struct Sizes {
  std::vector<int> lengths;
  std::vector<int> trees = {};  // nodes of each tree that are not padding; empty: all
  int nodes              = 1;
  int slots              = 0;  // after the prefix; 0: nodes
  int key_heads          = 1;
  int group              = 1;
  int head_size          = 64;
  int page_size          = 0;   // 0: contiguous
  int max_length         = -1;  // -1: the greatest
  float scale            = 0.1F;
  float magnitude        = 1;
  Shape shape            = Shape::random;

  [[nodiscard]] int sequences() const { return static_cast<int>(lengths.size()); }
  [[nodiscard]] int tree(int sequence) const {
    return trees.empty() ? nodes : trees[static_cast<std::size_t>(sequence)];
  }
  [[nodiscard]] int length(int sequence) const {
    return lengths[static_cast<std::size_t>(sequence)];
  }
  [[nodiscard]] int tree_slots() const { return slots > 0 ? slots : nodes; }
  [[nodiscard]] int greatest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  [[nodiscard]] TreeAttentionOptions options() const {
    return {.query_heads = key_heads * group,
            .key_heads   = key_heads,
            .head_size   = head_size,
            .scale       = scale};
  }
};

template <class T>
T not_a_number() {
  return from_float<T>(std::numeric_limits<float>::quiet_NaN());
}

/// Inputs of one call; what must not be read is NaN.
template <class T>
struct Problem {
  Sizes sizes;
  std::vector<T> queries;                // [B, N, Hq, D]
  std::vector<std::uint64_t> ancestors;  // [B, N]
  std::vector<T> keys, values;
  std::vector<std::int32_t> pages;
  KeyValues<T> layout;  // without data

  Problem(const Sizes& s, std::uint32_t seed) : sizes(s) {
    std::mt19937 random(seed);
    const int slots    = s.greatest() + s.tree_slots() + 3;
    const int width    = s.key_heads * s.head_size;
    layout.slot_stride = width;
    layout.head_stride = s.head_size;
    std::size_t rows;
    if (s.page_size == 0) {
      layout.page_stride = static_cast<std::int64_t>(slots) * width;
      rows               = static_cast<std::size_t>(slots) * s.lengths.size();
    } else {
      layout.page_stride = static_cast<std::int64_t>(s.page_size) * width;
      layout.page_size   = s.page_size;
      layout.max_pages   = (slots + s.page_size - 1) / s.page_size;
      const int count    = s.sequences() * layout.max_pages;
      pages.resize(static_cast<std::size_t>(count));
      std::iota(pages.begin(), pages.end(), 1);
      std::shuffle(pages.begin(), pages.end(), random);
      for (int b = 0; b < s.sequences(); ++b) {
        for (int page = 0; page < layout.max_pages; ++page) {
          if (page * s.page_size >= s.length(b) + s.tree_slots()) {
            pages[static_cast<std::size_t>(b * layout.max_pages + page)] = 0;
          }
        }
      }
      rows = static_cast<std::size_t>((count + 1) * s.page_size);
    }
    keys   = std::vector<T>(rows * static_cast<std::size_t>(width), not_a_number<T>());
    values = keys;

    // The same numbers in every layout.
    std::mt19937 numbers(seed + 1);
    std::normal_distribution<float> normal;
    for (int b = 0; b < s.sequences(); ++b) {
      for (int slot = 0; slot < s.length(b) + (s.slots > 0 ? s.slots : s.tree(b)); ++slot) {
        for (int head = 0; head < s.key_heads; ++head) {
          const auto at = static_cast<std::size_t>(host_layout().offset(b, slot, head));
          for (std::size_t d = 0; d < static_cast<std::size_t>(s.head_size); ++d) {
            keys[at + d]   = from_float<T>(s.magnitude * normal(numbers));
            values[at + d] = from_float<T>(normal(numbers));
          }
        }
      }
    }
    for (int b = 0; b < s.sequences(); ++b) {
      std::vector<std::uint64_t> tree;
      for (int i = 0; i < s.nodes; ++i) {
        if (i >= s.tree(b)) {
          tree.push_back(0);
          continue;
        }
        const auto parent =
            s.shape == Shape::chain
                ? i - 1
                : static_cast<int>(numbers() % static_cast<unsigned>(std::max(i, 1)));
        tree.push_back((i == 0 ? 0 : tree[static_cast<std::size_t>(parent)]) | std::uint64_t{1}
                                                                                   << i);
      }
      ancestors.insert(ancestors.end(), tree.begin(), tree.end());
    }
    const std::size_t row = static_cast<std::size_t>(s.key_heads * s.group * s.head_size);
    for (const std::uint64_t mask : ancestors) {
      for (std::size_t d = 0; d < row; ++d) {
        queries.push_back(mask == 0 ? not_a_number<T>()
                                    : from_float<T>(s.magnitude * normal(numbers)));
      }
    }
  }

  [[nodiscard]] KeyValues<T> host_layout() const {
    KeyValues<T> view = layout;
    view.pages        = pages.empty() ? nullptr : pages.data();
    return view;
  }

  [[nodiscard]] std::vector<double> expected() const {
    const auto options = sizes.options();
    const auto view    = host_layout();
    const int D        = sizes.head_size;
    std::vector<double> out;
    for (int b = 0; b < sizes.sequences(); ++b) {
      for (int i = 0; i < sizes.nodes; ++i) {
        const std::uint64_t mask = ancestors[static_cast<std::size_t>(b * sizes.nodes + i)];
        for (int h = 0; h < options.query_heads; ++h) {
          std::vector<double> row(static_cast<std::size_t>(D));
          const T* query =
              queries.data() +
              static_cast<std::ptrdiff_t>((b * sizes.nodes + i) * options.query_heads + h) * D;
          std::vector<std::pair<double, std::int64_t>> scores;
          double maximum = -INFINITY, sum = 0;
          for (int slot = 0; mask != 0 && slot < sizes.length(b) + sizes.tree_slots(); ++slot) {
            if (slot >= sizes.length(b) && (mask >> (slot - sizes.length(b)) & 1) == 0) continue;
            const std::int64_t at = view.offset(b, slot, h / sizes.group);
            double score          = 0;
            for (int d = 0; d < D; ++d) {
              score += static_cast<double>(to_float(query[d])) *
                       static_cast<double>(to_float(keys[static_cast<std::size_t>(at + d)]));
            }
            score *= static_cast<double>(sizes.scale);
            scores.emplace_back(score, at);
            maximum = std::max(maximum, score);
          }
          for (auto& [score, at] : scores) sum += score = std::exp(score - maximum);
          for (const auto& [weight, at] : scores) {
            for (int d = 0; d < D; ++d) {
              row[static_cast<std::size_t>(d)] +=
                  weight / sum *
                  static_cast<double>(to_float(values[static_cast<std::size_t>(at + d)]));
            }
          }
          out.insert(out.end(), row.begin(), row.end());
        }
      }
    }
    return out;
  }
};

template <class T>
struct OnDevice {
  DeviceBuffer<T> queries, keys, values, out;
  DeviceBuffer<std::uint64_t> ancestors;
  DeviceBuffer<std::int32_t> pages, lengths;
  test::Scratch workspace;
  TreeQueries<T> trees;
  KeyValues<T> cache;
  TreeAttentionOptions options;

  explicit OnDevice(const Problem<T>& problem)
      : queries(problem.queries),
        keys(problem.keys),
        values(problem.values),
        out(std::vector<T>(problem.queries.size(), not_a_number<T>())),
        ancestors(problem.ancestors),
        pages(problem.pages),
        lengths(problem.sizes.lengths),
        cache(problem.layout),
        options(problem.sizes.options()) {
    const Sizes& s = problem.sizes;
    trees          = TreeQueries<T>{.queries    = queries.data(),
                                    .ancestors  = ancestors.data(),
                                    .lengths    = lengths.data(),
                                    .sequences  = s.sequences(),
                                    .nodes      = s.nodes,
                                    .max_length = s.max_length < 0 ? s.greatest() : s.max_length,
                                    .slots      = s.slots};
    cache.keys     = keys.data();
    cache.values   = values.data();
    cache.pages    = pages.data();
    workspace      = test::Scratch(
        tree_attention_workspace_bytes(s.sequences(), s.nodes, trees.max_length, options));
  }
  void run(cudaStream_t stream = nullptr) {
    tree_attention(trees, cache, options, out.data(), workspace.on(stream), stream);
  }
  std::vector<T> result() {
    run();
    return out.download();
  }
};

template <class T>
std::vector<std::uint16_t> bits(const std::vector<T>& numbers) {
  std::vector<std::uint16_t> words(numbers.size());
  if (!numbers.empty()) std::memcpy(words.data(), numbers.data(), 2 * numbers.size());
  return words;
}

template <class T>
void check_close(const Problem<T>& problem, const std::vector<T>& got, double slack = 1) {
  const std::vector<double> expected = problem.expected();
  REQUIRE(got.size() == expected.size());
  double greatest = 0, error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    greatest         = std::max(greatest, std::abs(expected[i]));
    const double off = std::abs(static_cast<double>(to_float(got[i])) - expected[i]);
    error            = off <= error || std::isnan(error) ? error : off;
  }
  INFO("greatest " << greatest << ", error " << error);
  CHECK(error <= slack * test::tolerance<T>() * greatest);
  const std::size_t row =
      static_cast<std::size_t>(problem.sizes.options().query_heads * problem.sizes.head_size);
  for (std::size_t i = 0; i < problem.ancestors.size(); ++i) {
    if (problem.ancestors[i] != 0) continue;
    for (std::size_t d = 0; d < row; ++d) REQUIRE(to_float(got[i * row + d]) == 0);
  }
}

/// Runs a test on the device; in the emulator with the kernel of warpgroups and then with the other.
template <class Body, class Start>
void on_both_kernels(Body body, Start start) {
#if defined(TOOLDECODE_SIMT)
  for (const int capability : {90, 80}) {
    INFO("code for " << capability);
    simt::code_capability = capability;
    start();
    test::on_device(body);
  }
  simt::code_capability = 90;
#else
  start();
  test::on_device(body);
#endif
}
template <class Body>
void on_both_kernels(Body body) {
  on_both_kernels(body, [] {});
}

template <class T>
void check_problem(const Sizes& sizes, std::uint32_t seed) {
  INFO("seed " << seed << ", nodes " << sizes.nodes << ", head size " << sizes.head_size
               << ", group " << sizes.group << ", length " << sizes.greatest());
  const Problem<T> problem(sizes, seed);
  OnDevice<T> device(problem);
  check_close(problem, device.result());
}

}  // namespace

TEST_CASE("tree_attention attends to prefixes of any length and to ancestors") {
  on_both_kernels([] {
    std::uint32_t seed = 1;
    for (const Sizes& sizes : {Sizes{.lengths = {0}, .nodes = 1},
                               {.lengths = {1}, .nodes = 5, .group = 3},
                               {.lengths = {63}, .nodes = 17},
                               {.lengths = {64}, .nodes = 64},
                               {.lengths = {65}, .nodes = 63, .shape = Shape::chain},
                               {.lengths = {127}, .nodes = 7, .group = 4},
                               {.lengths = {200}, .nodes = 4, .group = 8},
                               {.lengths = {0}, .nodes = 64, .group = 4},
                               {.lengths = {3}, .nodes = 33, .group = 8}}) {
      check_problem<__half>(sizes, seed++);
    }
  });
}

TEST_CASE("tree_attention attends with heads of each supported size") {
  on_both_kernels([] {
    std::uint32_t seed = 20;
    for (const int head_size : {96, 128, 256}) {
      check_problem<__half>({.lengths = {37}, .nodes = 10, .group = 3, .head_size = head_size},
                            seed++);
    }
    for (const int head_size : {64, 128}) {
      check_problem<__nv_bfloat16>(
          {.lengths = {20}, .nodes = 9, .key_heads = 2, .head_size = head_size}, seed++);
    }
  });
}

TEST_CASE("tree_attention of a draft layer's level sees the slots of all levels before") {
  on_both_kernels([] {
    std::uint32_t seed = 60;
    for (const Sizes& sizes : {Sizes{.lengths = {40}, .nodes = 3, .slots = 9, .group = 2},
                               {.lengths = {64, 0, 5}, .nodes = 10, .slots = 60, .key_heads = 2},
                               {.lengths = {127}, .nodes = 2, .slots = 64, .page_size = 5},
                               {.lengths = {30}, .nodes = 12, .slots = 4},
                               {.lengths = {30, 31}, .nodes = 6, .slots = 40, .max_length = 400}}) {
      INFO("seed " << seed);
      Problem<__half> problem(sizes, seed++);
      // Each node sees some slots, the last is padding, and bits past the slots are ignored.
      std::mt19937_64 random(seed);
      const std::uint64_t there =
          sizes.slots == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << sizes.slots) - 1;
      std::vector<std::uint64_t> seen(sizes.lengths.size());
      for (std::size_t i = 0; i < problem.ancestors.size(); ++i) {
        const std::size_t b  = i / static_cast<std::size_t>(sizes.nodes);
        const bool is_last   = (i + 1) % static_cast<std::size_t>(sizes.nodes) == 0;
        problem.ancestors[i] = is_last ? 0 : random() & random() & there;
        if (!is_last) problem.ancestors[i] |= 1;
        seen[b] |= problem.ancestors[i];
      }
      // What no node sees is not read.
      const auto layout = problem.host_layout();
      for (int b = 0; b < sizes.sequences(); ++b) {
        for (int slot = 0; slot < sizes.slots; ++slot) {
          if ((seen[static_cast<std::size_t>(b)] >> slot & 1) != 0) continue;
          for (int head = 0; head < sizes.key_heads; ++head) {
            const auto at =
                static_cast<std::ptrdiff_t>(layout.offset(b, sizes.length(b) + slot, head));
            std::fill_n(problem.keys.begin() + at, sizes.head_size, not_a_number<__half>());
            std::fill_n(problem.values.begin() + at, sizes.head_size, not_a_number<__half>());
          }
        }
      }
      const std::size_t row =
          static_cast<std::size_t>(sizes.key_heads * sizes.group * sizes.head_size);
      for (std::size_t i = 0; i < problem.ancestors.size(); ++i) {
        for (std::size_t d = 0; problem.ancestors[i] != 0 && d < row; ++d) {
          problem.queries[i * row + d] = from_float<__half>(static_cast<float>(random() % 7) - 3);
        }
      }
      const std::vector<double> expected = problem.expected();
      for (std::uint64_t& mask : problem.ancestors) {
        if (mask != 0) mask |= ~there;
      }
      OnDevice<__half> device(problem);
      const std::vector<__half> got = device.result();
      double error                  = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double off = std::abs(static_cast<double>(to_float(got[i])) - expected[i]);
        error            = off <= error || std::isnan(error) ? error : off;
      }
      CHECK(error < 4 * test::tolerance<__half>());
    }
  });
}

TEST_CASE("tree_attention gives the same bits for pages and for contiguous memory") {
  on_both_kernels([] {
    Sizes sizes{.lengths = {20, 0, 37}, .trees = {6, 2, 5}, .nodes = 6, .key_heads = 2};
    const Problem<__half> whole(sizes, 31);
    const std::vector<__half> expected = OnDevice<__half>(whole).result();
    check_close(whole, expected);
    for (const int page_size : {1, 5, 16}) {
      INFO("pages of " << page_size);
      sizes.page_size = page_size;
      const Problem<__half> paged(sizes, 31);
      CHECK(bits(OnDevice<__half>(paged).result()) == bits(expected));
    }
  });
}

TEST_CASE("tree_attention over any number of splits, filled or empty, equals the whole") {
  on_both_kernels([] {
    for (const int length : {140, 1}) {
      INFO("length " << length);
      Sizes sizes{.lengths = {length, 33}, .nodes = 3, .group = 2, .max_length = 0};
      const Problem<__half> whole(sizes, 41);
      const std::vector<__half> unsplit = OnDevice<__half>(whole).result();
      check_close(whole, unsplit);

      sizes.max_length = 400;
      const Problem<__half> split(sizes, 41);
      for (const int multiprocessors : {1, 4}) {
#if defined(TOOLDECODE_SIMT)
        simt::multiprocessors = multiprocessors;
#endif
        INFO("multiprocessors " << multiprocessors);
        CHECK(tooldecode::cuda::detail::plan_tree_attention(2, 3, 403, sizes.options()).splits > 2);
        const std::vector<__half> got = OnDevice<__half>(split).result();
        check_close(split, got);
        double error = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
          error = std::max(error, std::abs(static_cast<double>(to_float(got[i])) -
                                           static_cast<double>(to_float(unsplit[i]))));
        }
        CHECK(error < 2e-3);
      }
    }
  });
}

TEST_CASE("tree_attention gives the same bits in any order of threads and blocks") {
  const Problem<__nv_bfloat16> problem({.lengths = {70}, .nodes = 40, .max_length = 400}, 51);
  std::vector<std::uint16_t> first;
  on_both_kernels(
      [&] {
        const auto got = bits(OnDevice<__nv_bfloat16>(problem).result());
        if (first.empty()) first = got;
        CHECK(got == first);
      },
      [&] { first.clear(); });
}

TEST_CASE("tree_attention does not overflow for scores of any size and sign") {
  on_both_kernels([] {
    for (const float scale : {4.0F, -4.0F, 0.0F}) {
      INFO("scale " << scale);
      // Scores of several thousand: the greatest takes all the weight, wherever it is.
      const Problem<__half> problem(
          {.lengths = {40}, .nodes = 7, .max_length = 0, .scale = scale, .magnitude = 6}, 61);
      check_close(problem, OnDevice<__half>(problem).result());
    }
    // Scores that grow from tile to tile by less and by more than the threshold for rescaling.
    Problem<__half> rising({.lengths = {120}, .nodes = 2, .max_length = 0, .scale = 1}, 62);
    for (std::size_t slot = 0; slot < 122; ++slot) {
      for (std::size_t d = 0; d < 64; ++d) {
        rising.keys[64 * slot + d] = from_float<__half>(d == 0 ? static_cast<float>(slot) : 0);
      }
    }
    for (std::size_t node = 0; node < 2; ++node) {
      rising.queries[64 * node] = from_float<__half>(node == 0 ? 0.1F : 0.5F);
    }
    check_close(rising, OnDevice<__half>(rising).result());
  });
}

TEST_CASE("tree_attention in a captured graph follows changed lengths and ancestors") {
  on_both_kernels([] {
    const Problem<__half> problem({.lengths = {70}, .nodes = 6, .max_length = 400}, 71);
    OnDevice<__half> device(problem);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    device.run(stream);
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t round = nullptr;
    check(cudaGraphInstantiate(&round, graph, 0));
    for (const int length : {70, 9, 40}) {
      INFO("length " << length);
      Problem<__half> now  = problem;
      now.sizes.lengths    = {length};
      now.ancestors.back() = length == 9 ? 0 : 1U << 5U;
      device.lengths.upload(now.sizes.lengths);
      device.ancestors.upload(now.ancestors);
      check(cudaGraphLaunch(round, stream));
      check(cudaStreamSynchronize(stream));
      check_close(now, device.out.download());
    }
    check(cudaGraphExecDestroy(round));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  });
}

TEST_CASE("tree_attention plans blocks that fit any device") {
#if defined(TOOLDECODE_SIMT)
  const simt::Options before = simt::options;
  for (const std::size_t kilobytes : {64, 99, 163, 227}) {
    simt::options.shared_limit = kilobytes * 1024;
    for (const int head_size : {64, 96, 128, 256}) {
      for (const int nodes : {1, 17, 64}) {
        for (const int group : {1, 7, 16}) {
          const auto plan = tooldecode::cuda::detail::plan_tree_attention(
              1, nodes, 5000, {.query_heads = 2 * group, .key_heads = 2, .head_size = head_size});
          CHECK(plan.shared_bytes <= simt::options.shared_limit);
          const int rows = head_size > 128 ? 16 : 32;
          CHECK(plan.row_tiles * plan.warps * rows >= nodes * group);
          CHECK(plan.warps <= 8);
        }
      }
    }
    if (kilobytes < 100) check_problem<__half>({.lengths = {9}, .nodes = 17, .head_size = 256}, 81);
  }
  simt::options = before;
#endif
}

TEST_CASE("tree_attention throws for unsupported arguments and does nothing for empty ones") {
  on_both_kernels([] {
    const Problem<__half> problem({.lengths = {3}, .nodes = 2}, 91);
    std::string said;  // message of the last error
    const auto refuses = [&](Errc code, auto change) {
      OnDevice<__half> device(problem);
      change(device);
      try {
        device.run();
      } catch (const Error& error) {
        said = error.what();
        return error.code() == code;
      }
      return false;
    };
    using Device = OnDevice<__half>;
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.options.head_size = 80; }));
    CHECK(said == "tree_attention: head_size 80: must be 64, 96, 128 or 256");
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.options.key_heads = 0; }));
    CHECK(said == "tree_attention: key_heads 0: must be 1 or more");
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.options.key_heads = 2; }));
    CHECK(said == "tree_attention: query_heads 1: must be a positive multiple of key_heads 2");
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.trees.slots = 65; }));
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.trees.slots = -1; }));
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.trees.nodes = 65; }));
    CHECK(said == "tree_attention: nodes 65: must be from 0 to 64");
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.trees.sequences = -1; }));
    CHECK(said == "tree_attention: sequences -1: must be 0 or more");
    CHECK(refuses(Errc::invalid_option, [](Device& d) { d.trees.max_length = -1; }));
    CHECK(said == "tree_attention: max_length -1: must be 0 or more");
    CHECK(refuses(Errc::shape_mismatch, [](Device& d) { d.trees.queries += 1; }));
    CHECK(said == "tree_attention: queries: must be aligned to 16 bytes, and not null");
    CHECK(refuses(Errc::shape_mismatch, [](Device& d) { d.trees.ancestors = nullptr; }));
    CHECK(said == "tree_attention: ancestors: must not be null");
    CHECK(refuses(Errc::shape_mismatch, [](Device& d) { d.trees.lengths = nullptr; }));
    CHECK(refuses(Errc::shape_mismatch, [](Device& d) { d.cache.keys = nullptr; }));
    CHECK(refuses(Errc::shape_mismatch, [](Device& d) { d.cache.slot_stride = 65; }));
    CHECK(said == "tree_attention: strides: must be multiples of 8 numbers");
    CHECK(refuses(Errc::shape_mismatch, [](Device& d) { d.cache.pages = d.lengths.data(); }));
    CHECK(said ==
          "tree_attention: page_size: must be 1 or more where there are pages, as must max_pages");
#if defined(TOOLDECODE_SIMT)
    simt::multiprocessors = 132;  // so that there are many splits
#endif
    CHECK(refuses(Errc::shape_mismatch, [](Device& d) { d.trees.max_length = 10'000; }));
#if defined(TOOLDECODE_SIMT)
    simt::multiprocessors = 4;
#endif

    OnDevice<__half> device(problem);
    device.trees.nodes = 0;
    device.run();
    CHECK(std::isnan(to_float(device.out.download().front())));
  });
}

#if defined(TOOLDECODE_SIMT)

TEST_CASE("tree_attention_workspace_bytes holds the parts of any plan") {
  using namespace tooldecode::cuda::detail;
  for (const int multiprocessors : {1, 4, 46, 132}) {
    simt::multiprocessors = multiprocessors;
    for (const int sequences : {1, 2, 9, 33, 70, 300}) {
      for (const int nodes : {1, 30, 64}) {
        for (const int key_heads : {1, 2, 8}) {
          for (const int group : {1, 4, 7}) {
            for (const int length : {0, 100, 1000, 40'000}) {
              const TreeAttentionOptions options{
                  .query_heads = key_heads * group, .key_heads = key_heads, .head_size = 128};
              const std::size_t bytes =
                  tree_attention_workspace_bytes(sequences, nodes, length, options);
              for (const int parts :
                   {plan_tree_attention(sequences, nodes, length + 64, options).splits,
                    plan_warpgroup_attention(sequences, nodes, length + 64, options).splits}) {
                AttentionParts placed = make_parts(sequences, nodes, options, parts);
                WorkspaceLayout layout;
                if (parts > 1) placed.place(layout);
                if (layout.bytes() > bytes) {
                  CAPTURE(multiprocessors, sequences, nodes, key_heads, group, length, parts);
                  CHECK(layout.bytes() <= bytes);
                }
              }
            }
          }
        }
      }
    }
  }
  simt::multiprocessors = 4;
}

#endif
