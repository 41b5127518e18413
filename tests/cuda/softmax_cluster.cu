#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/softmax_cluster.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::MaskedRow;
using tooldecode::cuda::detail::plan_softmax_cluster;
using tooldecode::cuda::detail::SoftmaxClusterPlan;

/// A cluster of `blocks` holds a row, all of it in shared memory unless `packs_in_registers`.
template <Number T>
SoftmaxClusterPlan plan_of(std::size_t vocabulary, int blocks, bool is_wide = false,
                           int packs_in_registers = 0) {
  const int part = MaskedRow<T>::part_packs(static_cast<int>(vocabulary), blocks);
  return {.blocks         = blocks,
          .is_wide        = is_wide,
          .packs_in_block = std::max(part - packs_in_registers, 1)};
}

/// The kernel's outputs for a batch.
struct Written {
  std::vector<float> values;  // [B, V]
  std::vector<std::int32_t> kept;
};
template <Number T, bool is_log>
Written written(const LogitsRows<T>& rows, float temperature, const std::uint64_t* cuts,
                const SoftmaxClusterPlan& plan) {
  const auto count = static_cast<std::size_t>(rows.rows);
  const auto size  = static_cast<std::size_t>(rows.vocabulary);
  const DeviceBuffer<float> values(
      std::vector<float>(count * size, std::numeric_limits<float>::quiet_NaN()));
  const DeviceBuffer<std::int32_t> kept(std::vector<std::int32_t>(count, -5));
  tooldecode::cuda::detail::launch_softmax_cluster<is_log>(rows, temperature, cuts, plan,
                                                           values.data(), kept.data(), nullptr);
  return {values.download(), kept.download()};
}

/// Compares rows of a batch; the second is forbidden entirely, and logits below `min` are cut off.
template <Number T>
void rows_equal_float64(std::size_t count, std::size_t vocabulary, const SoftmaxClusterPlan& plan,
                        float minimum = 0, float temperature = 0.8F) {
  CAPTURE(sizeof(T), count, vocabulary, plan.blocks, plan.is_wide, plan.packs_in_block, minimum,
          temperature);
  std::mt19937 random(31);
  const std::vector<T> logits = test::normal_numbers<T>(count * vocabulary, random, 4);
  const std::size_t words     = (vocabulary + 31) / 32;
  std::vector<std::uint32_t> masks;
  for (std::size_t row = 0; row < count; ++row) {
    const auto mask = test::random_mask(vocabulary, row == 1 ? 0 : 0.7, random);
    masks.insert(masks.end(), mask.begin(), mask.end());
  }
  const DeviceBuffer<T> device_logits(logits);
  const DeviceBuffer<std::uint32_t> device_masks(masks);
  const std::uint64_t cut = std::uint64_t{std::bit_cast<std::uint32_t>(minimum) | 0x80000000U}
                            << 32;
  const DeviceBuffer<std::uint64_t> device_cuts(std::vector<std::uint64_t>(count, cut));
  const LogitsRows<T> rows{.logits     = device_logits.data(),
                           .rows       = static_cast<int>(count),
                           .vocabulary = static_cast<int>(vocabulary),
                           .mask       = device_masks.data()};
  const std::uint64_t* const cuts = minimum == 0 ? nullptr : device_cuts.data();
  const Written softmax           = written<T, false>(rows, temperature, cuts, plan);
  const Written logs              = written<T, true>(rows, temperature, cuts, plan);
  for (std::size_t row = 0; row < count; ++row) {
    std::vector<double> distribution(vocabulary);
    double top = -INFINITY, sum = 0;
    std::int32_t kept = 0;
    for (std::size_t t = 0; t < vocabulary; ++t) {
      const float logit = to_float(logits[row * vocabulary + t]) / temperature;
      const bool can_be =
          (masks[row * words + t / 32] >> (t % 32) & 1) != 0 && (minimum == 0 || logit >= minimum);
      distribution[t] = can_be ? static_cast<double>(logit) : -INFINITY;
      top             = std::max(top, distribution[t]);
      kept += static_cast<int>(can_be);
    }
    for (const double logit : distribution) sum += logit == -INFINITY ? 0 : std::exp(logit - top);
    CHECK(softmax.kept[row] == kept);
    CHECK(logs.kept[row] == kept);
    int wrong = 0;
    for (std::size_t t = 0; t < vocabulary; ++t) {
      const double p        = static_cast<double>(softmax.values[row * vocabulary + t]);
      const double log      = static_cast<double>(logs.values[row * vocabulary + t]);
      const double true_log = distribution[t] - top - std::log(sum);
      const bool is_right   = distribution[t] == -INFINITY
                                  ? p == 0 && log == -INFINITY
                                  : std::abs(p - std::exp(true_log)) < 1e-5 * std::exp(true_log) &&
                                      std::abs(log - true_log) < 1e-5 * std::max(1.0, -true_log);
      wrong += static_cast<int>(!is_right);
    }
    CHECK(wrong == 0);
  }
}

bool has_clusters() {
  return code_capability(tooldecode::cuda::detail::softmax_cluster_kernel<float, false, false>) >=
         90;
}

}  // namespace

TEST_CASE("softmax_cluster equals float64 for rows that a cluster holds") {
  test::on_device([] {
    if (!has_clusters()) return;
    for (const int blocks : {1, 2, 4, 8}) {
      for (const std::size_t vocabulary : {1, 33, 1027}) {
        rows_equal_float64<float>(2, vocabulary, plan_of<float>(vocabulary, blocks));
      }
    }
    rows_equal_float64<float>(3, 9001, plan_of<float>(9001, 4));
    rows_equal_float64<float>(2, 9001, plan_of<float>(9001, 4), 0, 1);
    rows_equal_float64<__half>(3, 2051, plan_of<__half>(2051, 2));
    rows_equal_float64<__half>(2, 4096, plan_of<__half>(4096, 8), 0, 1);
    rows_equal_float64<__nv_bfloat16>(2, 1000, plan_of<__nv_bfloat16>(1000, 1));
    rows_equal_float64<__nv_bfloat16>(3, 5003, plan_of<__nv_bfloat16>(5003, 8));
  });
}

TEST_CASE("softmax_cluster equals float64 for rows that wide blocks hold, partly in registers") {
  test::on_device([] {
    if (!has_clusters()) return;
    for (const float temperature : {0.8F, 1.0F}) {
      rows_equal_float64<float>(2, 9001, plan_of<float>(9001, 2, true, 900), 0, temperature);
      rows_equal_float64<float>(2, 9001, plan_of<float>(9001, 8, true), 0, temperature);
    }
    rows_equal_float64<float>(2, 1501, plan_of<float>(1501, 2, true, 50), 2);
  });
}

TEST_CASE("softmax_cluster equals float64 for rows longer than what is in flight at once") {
  test::on_device([] {
    if (has_clusters()) rows_equal_float64<float>(1, 50'000, plan_of<float>(50'000, 1));
  });
}

TEST_CASE("softmax_cluster writes zeros for tokens below the cut") {
  test::on_device([] {
    if (!has_clusters()) return;
    rows_equal_float64<float>(3, 1501, plan_of<float>(1501, 4), 2);
    rows_equal_float64<__half>(2, 1501, plan_of<__half>(1501, 2), 2);
    rows_equal_float64<float>(2, 77, plan_of<float>(77, 8), INFINITY);  // nothing is left
  });
}

TEST_CASE("softmax_cluster gives the same bits in any order of threads") {
  std::mt19937 random(32);
  const std::vector<float> logits = test::normal_numbers<float>(2 * 6007, random, 3);
  std::set<std::vector<float>> results;
  test::on_device([&] {
    if (!has_clusters()) return;
    const DeviceBuffer<float> device_logits(logits);
    const LogitsRows<float> rows{.logits = device_logits.data(), .rows = 2, .vocabulary = 6007};
    for (int i = 0; i < 2; ++i)
      results.insert(written<float, false>(rows, 1, nullptr, plan_of<float>(6007, 8)).values);
  });
  CHECK(results.size() <= 1);
}

#if defined(TOOLDECODE_SIMT)

TEST_CASE("plan_softmax_cluster leaves room for other rows and spreads few rows") {
  simt::multiprocessors = 132;
  const auto plan       = plan_softmax_cluster<float, false>;
  const auto half_plan  = plan_softmax_cluster<__half, false>;
  struct Case {
    int rows, vocabulary, blocks, half_blocks;
  };
  for (const auto& [rows, vocabulary, blocks, half_blocks] :
       {Case{256, 1000, 1, 1}, Case{256, 32'000, 2, 1}, Case{256, 128'256, 8, 4},
        Case{256, 262'144, 8, 8}, Case{256, 1 << 20, 0, 0}, Case{1, 1000, 1, 1},
        Case{40, 9000, 2, 2}, Case{5, 0, 1, 1}, Case{20, 128'256, 8, 4}}) {
    CAPTURE(rows, vocabulary);
    CHECK(plan(rows, vocabulary).blocks == blocks);
    CHECK(half_plan(rows, vocabulary).blocks == half_blocks);
    CHECK(!plan(rows, vocabulary).is_wide);
    CHECK(!half_plan(rows, vocabulary).is_wide);
  }
  for (const int rows : {50, 64, 66}) {
    CAPTURE(rows);
    CHECK(plan(rows, 128'256).blocks == 2);
    CHECK(plan(rows, 128'256).is_wide);
    CHECK(half_plan(rows, 128'256).blocks == 4);
    CHECK(!half_plan(rows, 128'256).is_wide);
  }
  for (const int rows : {1, 16, 32, 49, 67}) {
    CAPTURE(rows);
    CHECK(plan(rows, 128'256).blocks == 8);
    CHECK(!plan(rows, 128'256).is_wide);
  }
  for (const int vocabulary : {100'000, 128'256, 131'072, 140'000, 151'936, 262'144}) {
    CAPTURE(vocabulary);
    const auto wide = plan(64, vocabulary);
    CHECK(wide.shared_bytes<float>() <= simt::options.shared_limit);
    const int left = MaskedRow<float>::part_packs(vocabulary, wide.blocks) - wide.packs_in_block;
    CHECK(left <= (wide.is_wide ? 1024 * 2 : 0));
    CHECK(half_plan(64, vocabulary).shared_bytes<__half>() <= simt::options.shared_limit);
  }
  simt::compute_capability = 89;
  CHECK(plan(256, 1000).blocks == 0);
  simt::compute_capability = 90;
  simt::code_capability    = 75;  // which a device of 9.0 also runs
  CHECK(plan(256, 1000).blocks == 0);
  CHECK(plan_softmax_cluster<__half, true>(256, 1000).blocks == 0);
  simt::code_capability = 90;
  simt::multiprocessors = 4;
}

#endif
