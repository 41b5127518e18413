#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/warpgroup_attention.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::launch_warpgroup_attention;
using tooldecode::cuda::detail::plan_warpgroup_attention;
using tooldecode::cuda::detail::WarpgroupAttentionPlan;

/// Compares one sequence with float64, its slots split as the plan says. Each node sees itself and,
/// of the nodes before, those whose bits a pattern has. The last node is padding.
template <class T, int head_size>
void attention_equals_float64(int length, int nodes, int group, WarpgroupAttentionPlan plan,
                              float scale = 0.2F) {
  CAPTURE(head_size, length, nodes, group, plan.splits, scale);
  constexpr std::size_t D = head_size;
  const int key_heads = 2, slots = length + nodes;
  const auto heads = static_cast<std::size_t>(key_heads * group);
  std::mt19937 random(7);
  const auto count   = static_cast<std::size_t>(slots * key_heads) * D;
  const auto queries = test::normal_numbers<T>(static_cast<std::size_t>(nodes) * heads * D, random);
  auto keys          = test::normal_numbers<T>(count, random);
  auto values        = test::normal_numbers<T>(count, random);
  std::vector<std::uint64_t> ancestors;
  for (int i = 0; i < nodes; ++i) {
    const std::uint64_t node = std::uint64_t{1} << i;
    ancestors.push_back(i + 1 == nodes ? 0 : node | (0xA5D3'9C71'55AA'0F1BU & (node - 1)));
  }
  for (std::size_t i = count - 2 * D; i < count; ++i) {
    keys[i] = values[i] = from_float<T>(NAN);  // of padding, which is not read
  }
  const DeviceBuffer<T> q(queries), k(keys), v(values), out(queries.size());
  const DeviceBuffer<std::uint64_t> trees(ancestors);
  const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{length});
  const TreeAttentionOptions options{.query_heads = key_heads * group,
                                     .key_heads   = key_heads,
                                     .head_size   = head_size,
                                     .scale       = scale};
  tooldecode::cuda::AttentionParts parts{
      .rows      = static_cast<std::int64_t>(nodes * key_heads * group),
      .splits    = plan.splits,
      .head_size = head_size};
  WorkspaceLayout layout;
  parts.place(layout);
  const test::Scratch workspace(layout.bytes());
  plan.row_tiles = (nodes * group + 127) / 128;
  launch_warpgroup_attention<T>({.queries    = q.data(),
                                 .ancestors  = trees.data(),
                                 .lengths    = lengths.data(),
                                 .sequences  = 1,
                                 .nodes      = nodes,
                                 .max_length = length},
                                {.keys        = k.data(),
                                 .values      = v.data(),
                                 .slot_stride = key_heads * head_size,
                                 .head_stride = head_size},
                                options, plan, out.data(), workspace, nullptr);
  const auto got    = out.download();
  const auto number = [](T x) { return static_cast<double>(to_float(x)); };
  double error      = 0;
  for (int i = 0; i < nodes; ++i) {
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t query = (static_cast<std::size_t>(i) * heads + h) * D;
      std::vector<double> sums(D);
      double total = 0;
      for (int slot = 0; slot < slots && i + 1 < nodes; ++slot) {
        const int node = slot - length;
        if (node >= 0 && (ancestors[static_cast<std::size_t>(i)] >> node & 1) == 0) continue;
        const std::size_t row =
            (static_cast<std::size_t>(slot) * 2 + h / static_cast<std::size_t>(group)) * D;
        double score = 0;
        for (std::size_t d = 0; d < D; ++d)
          score += number(queries[query + d]) * number(keys[row + d]);
        const double weight = std::exp(score * static_cast<double>(scale));
        total += weight;
        for (std::size_t d = 0; d < D; ++d) sums[d] += weight * number(values[row + d]);
      }
      for (std::size_t d = 0; d < D; ++d) {
        const double expected = total == 0 ? 0 : sums[d] / total;
        const double off      = std::abs(number(got[query + d]) - expected);
        error                 = off <= error || std::isnan(error) ? error : off;
      }
    }
  }
  CHECK(error < 4 * test::tolerance<T>());
}

bool is_there() {
  return has_warpgroup_products(tooldecode::cuda::detail::attend_tree_by_warpgroups<__half, 128>);
}

}  // namespace

TEST_CASE("warpgroup attention equals float64 however slots are split") {
  test::on_device([] {
    if (!is_there()) return;
    for (const int splits : {1, 2, 3, 8}) {
      attention_equals_float64<__half, 64>(201, 9, 3, {.splits = splits});
    }
    for (const int splits : {2, 6}) {
      attention_equals_float64<__nv_bfloat16, 128>(330, 33, 4, {.splits = splits});
    }
    attention_equals_float64<__half, 128>(0, 64, 1, {.splits = 4});
    attention_equals_float64<__nv_bfloat16, 64>(64, 2, 1, {.splits = 2});
  });
}

TEST_CASE("warpgroup attention equals float64 over more tiles than are in flight") {
  test::on_device([] {
    if (!is_there()) return;
    attention_equals_float64<__half, 64>(63 * 9, 5, 1, {});
    attention_equals_float64<__half, 64>(63 * 9, 5, 1, {}, 2);  // sums are rescaled now and then
    attention_equals_float64<__half, 64>(100, 5, 1, {}, -1);
  });
}

#if defined(TOOLDECODE_SIMT)

TEST_CASE("plan_warpgroup_attention fills the device and merges parts only where it must") {
  const auto plan = [](int sequences, int length, int key_heads) {
    return plan_warpgroup_attention(
        sequences, 60, length + 60,
        {.query_heads = 4 * key_heads, .key_heads = key_heads, .head_size = 128});
  };
  simt::multiprocessors = 132;
  for (const int length : {4096, 8192, 32'768}) {
    CHECK(plan(1, length, 8).row_tiles == 2);
    CHECK(plan(1, length, 8).splits == 8);
  }
  CHECK(plan(1, 32'768, 1).splits >= 60);
  CHECK(plan(1, 0, 8).splits == 1);
  CHECK(plan(64, 1000, 8).splits == 1);
  simt::multiprocessors = 4;
}

#endif
