// One workspace for all kernels that use one, as in an engine. Whatever ran before, a call writes
// what it writes with a workspace that no other call uses.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
#include <tooldecode/cuda/tree_attention.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

template <class... T>
std::vector<std::byte> bytes_of(const DeviceBuffer<T>&... buffers) {
  std::vector<std::byte> bytes;
  const auto add = [&](const auto& values) {
    const auto* const first = reinterpret_cast<const std::byte*>(values.data());
    bytes.insert(bytes.end(), first, first + values.size() * sizeof values[0]);
  };
  (add(buffers.download()), ...);
  return bytes;
}

template <class T>
DeviceBuffer<T> unwritten(std::size_t count) {
  std::vector<T> values(count);
  std::memset(static_cast<void*>(values.data()), 0xA5, count * sizeof(T));
  return DeviceBuffer<T>(values);
}

/// Small inputs of the kernels, each with as many blocks as need a merge.
struct Calls {
  static constexpr int states = 5, ranked = 700, hidden_size = 16, k = 4, mask_words = 22;
  static constexpr int rows = 3, vocabulary = 5000;
  static constexpr int nodes = 4, length = 150, head_size = 64;

  std::mt19937 random{31};
  DeviceBuffer<std::uint32_t> masks{std::vector<std::uint32_t>(states * mask_words, 0xF0F0F00FU)};
  DeviceBuffer<__half> weights{test::normal_numbers<__half>(ranked * hidden_size, random)};
  DeviceBuffer<__half> hidden{test::normal_numbers<__half>(states * hidden_size, random)};
  std::vector<float> numbers = test::normal_numbers<float>(rows * vocabulary, random);
  DeviceBuffer<float> logits{numbers};
  DeviceBuffer<std::int64_t> positions{std::vector<std::int64_t>{7, 8, 9}};
  DeviceBuffer<__half> queries{test::normal_numbers<__half>(nodes * head_size, random)};
  DeviceBuffer<__half> keys{test::normal_numbers<__half>((length + nodes) * head_size, random)};
  DeviceBuffer<__half> values{test::normal_numbers<__half>((length + nodes) * head_size, random)};
  DeviceBuffer<std::uint64_t> ancestors{std::vector<std::uint64_t>{1, 3, 5, 11}};
  DeviceBuffer<std::int32_t> lengths{std::vector<std::int32_t>{length}};
  TreeAttentionOptions heads{.query_heads = 1, .key_heads = 1, .head_size = head_size};

  [[nodiscard]] static constexpr std::size_t count() { return 6; }

  [[nodiscard]] std::size_t workspace_bytes() const {
    return std::max({pruned_head_workspace_bytes(states, ranked, k, mask_words),
                     masked_softmax_workspace_bytes(rows, vocabulary),
                     tree_attention_workspace_bytes(1, nodes, length, heads)});
  }

  [[nodiscard]] std::vector<std::byte> written(std::size_t call, const Workspace& workspace) const {
    const LogitsRows<float> batch{.logits = logits.data(), .rows = rows, .vocabulary = vocabulary};
    const NoiseRows noise{.seed = 3, .positions = positions.data()};
    switch (call) {
      case 0: {
        const auto tokens = unwritten<TokenId>(states * k);
        const auto tops   = unwritten<float>(states * k);
        const auto sums   = unwritten<float>(states);
        project_topk<__half>(
            {.weights = weights.data(), .rows = ranked, .hidden_size = hidden_size}, hidden.data(),
            states, masks.data(), mask_words, k, {tokens.data(), tops.data(), sums.data()},
            workspace, nullptr);
        return bytes_of(tokens, tops, sums);
      }
      case 1:
      case 2: {
        const auto tokens = unwritten<TokenId>(rows);
        find_tokens(batch, {.temperature = 0.8F, .top_p = call == 1 ? 1 : 0.7F}, noise,
                    tokens.data(), workspace, nullptr);
        return bytes_of(tokens);
      }
      case 3: {
        const auto out = unwritten<__half>(nodes * head_size);
        tree_attention<__half>({.queries    = queries.data(),
                                .ancestors  = ancestors.data(),
                                .lengths    = lengths.data(),
                                .sequences  = 1,
                                .nodes      = nodes,
                                .max_length = length},
                               {.keys        = keys.data(),
                                .values      = values.data(),
                                .slot_stride = head_size,
                                .head_stride = head_size},
                               heads, out.data(), workspace, nullptr);
        return bytes_of(out);
      }
      case 4: {
        const auto distribution = unwritten<float>(rows * vocabulary);
        const auto kept         = unwritten<std::int32_t>(rows);
        fill_masked_softmax(batch, {.min_p = 0.02F}, distribution.data(), kept.data(), workspace,
                            nullptr);
        return bytes_of(distribution, kept);
      }
      default: {  // tokens of a tree drawn with the same workspace, and its verdict
        std::vector<TokenId> tokens(max_nodes, -1);
        std::vector<std::int32_t> parents(max_nodes, 0);
        std::vector<std::uint64_t> above(max_nodes, 0);
        for (int node = 0; node < rows; ++node) {
          above[static_cast<std::size_t>(node)]   = (std::uint64_t{2} << node) - 1;
          parents[static_cast<std::size_t>(node)] = node == 0 ? 0 : node - 1;
          tokens[static_cast<std::size_t>(node)]  = node == 0 ? 1 : token_of(node - 1);
        }
        const DeviceBuffer<TokenId> tree_tokens(tokens);
        const DeviceBuffer<std::int32_t> tree_parents(parents), sizes(std::vector{rows});
        const DeviceBuffer<std::uint64_t> tree_ancestors(above);
        const auto choices  = unwritten<TokenId>(max_nodes);
        const auto verdicts = unwritten<tooldecode::cuda::TreeVerdict>(1);
        find_tokens(batch, {.temperature = 0.8F}, noise, choices.data(), workspace, nullptr);
        verify_trees({.tokens    = tree_tokens.data(),
                      .parents   = tree_parents.data(),
                      .ancestors = tree_ancestors.data(),
                      .sizes     = sizes.data()},
                     choices.data(), verdicts.data(), 1, nullptr);
        CHECK(verdicts.download()[0].accepted == rows - 1);  // the host drew the tree's tokens
        CHECK(verdicts.download()[0].tokens[rows - 1] == token_of(rows - 1));
        return bytes_of(verdicts);
      }
    }
  }

  [[nodiscard]] TokenId token_of(int row) const {
    std::vector<float> distribution(numbers.begin() + row * vocabulary,
                                    numbers.begin() + (row + 1) * vocabulary);
    LogitsPipeline({.temperature = 0.8F}).apply(distribution, {});
    return find_token(distribution, 0.8F, {3, 7 + static_cast<std::uint64_t>(row)}).value();
  }
};

}  // namespace

TEST_CASE("A Workspace shared by all kernels, in any order, does not change their results") {
  test::on_device([] {
    const Calls calls;
    std::vector<std::vector<std::byte>> expected;
    for (std::size_t call = 0; call < Calls::count(); ++call) {
      const test::Scratch own(calls.workspace_bytes());
      expected.push_back(calls.written(call, own));
    }
    const DeviceBuffer<std::byte> workspace(
        std::vector<std::byte>(calls.workspace_bytes(), std::byte{0xCC}));
    // Runs every call once after each other one and after itself.
    std::vector<std::size_t> order;
    for (std::size_t first = 0; first < Calls::count(); ++first) {
      order.push_back(first);
      for (std::size_t second = first + 1; second < Calls::count(); ++second) {
        order.push_back(first);
        order.push_back(second);
      }
    }
    order.push_back(order.front());
    std::set<std::pair<std::size_t, std::size_t>> pairs;
    std::size_t before = order.back();
    for (const std::size_t call : order) {
      CAPTURE(before, call);
      CHECK(calls.written(call, workspace) == expected[call]);
      pairs.insert({std::exchange(before, call), call});
    }
    CHECK(pairs.size() == Calls::count() * Calls::count());
  });
}

TEST_CASE("The workspace bytes for given sizes are enough for all smaller sizes") {
  test::on_device([] {
    const std::array rows{1, 2, 3, 5, 8, 13, 16, 17, 40, 100, 1000, 3000};
    const std::array vocabularies{1, 1000, 1025, 5000, 16'385, 40'000, 152'000};
    std::size_t before = 0;
    for (const int row : rows) {
      CAPTURE(row);
      std::size_t narrower = 0;
      for (const int vocabulary : vocabularies) {
        const std::size_t bytes = masked_softmax_workspace_bytes(row, vocabulary);
        CHECK(bytes >= narrower);
        narrower = bytes;
      }
      CHECK(narrower >= before);
      before = narrower;
    }
    for (const int head_size : {64, 128, 256}) {
      const TreeAttentionOptions heads{.query_heads = 8, .key_heads = 2, .head_size = head_size};
      const std::array nodes{1, 2, 5, 16, 33, 64};
      const std::array lengths{0, 31, 32, 100, 257, 300, 1000, 5000, 33'000};
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (std::size_t l = 0; l < lengths.size(); ++l) {
          for (const int sequences : {1, 2, 3, 7, 20}) {
            CAPTURE(head_size, nodes[n], lengths[l], sequences);
            const auto bytes = [&](int b, std::size_t i, std::size_t j) {
              return tree_attention_workspace_bytes(b, nodes[i], lengths[j], heads);
            };
            const std::size_t here = bytes(sequences, n, l);
            if (n > 0) CHECK(bytes(sequences, n - 1, l) <= here);
            if (l > 0) CHECK(bytes(sequences, n, l - 1) <= here);
            if (sequences > 1) CHECK(bytes(sequences - 1, n, l) <= here);
          }
        }
      }
    }
    CHECK(pruned_head_workspace_bytes(4, 700, 3) <= pruned_head_workspace_bytes(5, 700, 4));
    CHECK(pruned_head_workspace_bytes(5, 700, 4, 22) <= pruned_head_workspace_bytes(5, 700, 4, 23));
    CHECK(pruned_head_workspace_bytes(4, 700, 4, 23) <= pruned_head_workspace_bytes(5, 700, 4, 23));
    CHECK(pruned_head_workspace_bytes(5, 16, 4) <= pruned_head_workspace_bytes(5, 700, 4));
  });
}
