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

/// The kernel's outputs for a batch whose rows a cluster of `blocks` holds.
struct Written {
  std::vector<float> values;  // [B, V]
  std::vector<std::int32_t> kept;
};
template <Number T, bool is_log>
Written written(const LogitsRows<T>& rows, float temperature, const std::uint64_t* cuts,
                int blocks) {
  const auto count = static_cast<std::size_t>(rows.rows);
  const auto size  = static_cast<std::size_t>(rows.vocabulary);
  const DeviceBuffer<float> values(
      std::vector<float>(count * size, std::numeric_limits<float>::quiet_NaN()));
  const DeviceBuffer<std::int32_t> kept(std::vector<std::int32_t>(count, -5));
  launch(
      tooldecode::cuda::detail::softmax_cluster_kernel<T, is_log>,
      {.grid         = static_cast<unsigned>(rows.rows * blocks),
       .block        = tooldecode::cuda::detail::softmax_cluster_threads,
       .shared_bytes = tooldecode::cuda::detail::softmax_cluster_bytes<T>(rows.vocabulary, blocks),
       .cluster      = static_cast<unsigned>(blocks)},
      nullptr, rows, temperature, cuts, blocks, values.data(), kept.data());
  return {values.download(), kept.download()};
}

/// Compares rows of a batch; the second is forbidden entirely, and logits below `min` are cut off.
template <Number T>
void rows_equal_float64(std::size_t count, std::size_t vocabulary, int blocks, float minimum = 0) {
  constexpr float temperature = 0.8F;
  CAPTURE(sizeof(T), count, vocabulary, blocks, minimum);
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
  const Written softmax           = written<T, false>(rows, temperature, cuts, blocks);
  const Written logs              = written<T, true>(rows, temperature, cuts, blocks);
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
  return code_capability(tooldecode::cuda::detail::softmax_cluster_kernel<float, false>) >= 90;
}

}  // namespace

TEST_CASE("softmax_cluster equals float64 for rows that a cluster holds") {
  test::on_device([] {
    if (!has_clusters()) return;
    for (const int blocks : {1, 2, 4, 8}) {
      for (const std::size_t vocabulary : {1, 33, 1027}) {
        rows_equal_float64<float>(2, vocabulary, blocks);
      }
    }
    rows_equal_float64<float>(3, 9001, 4);
    rows_equal_float64<__half>(3, 2051, 2);
    rows_equal_float64<__half>(2, 4096, 8);
    rows_equal_float64<__nv_bfloat16>(2, 1000, 1);
    rows_equal_float64<__nv_bfloat16>(3, 5003, 8);
  });
}

TEST_CASE("softmax_cluster equals float64 for rows longer than what is in flight at once") {
  test::on_device([] {
    if (has_clusters()) rows_equal_float64<float>(1, 50'000, 1);
  });
}

TEST_CASE("softmax_cluster writes zeros for tokens below the cut") {
  test::on_device([] {
    if (!has_clusters()) return;
    rows_equal_float64<float>(3, 1501, 4, 2);
    rows_equal_float64<__half>(2, 1501, 2, 2);
    rows_equal_float64<float>(2, 77, 8, INFINITY);  // nothing is left
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
    for (int i = 0; i < 2; ++i) results.insert(written<float, false>(rows, 1, nullptr, 8).values);
  });
  CHECK(results.size() <= 1);
}

#if defined(TOOLDECODE_SIMT)

TEST_CASE("softmax_cluster_blocks leaves room for other rows and spreads few rows") {
  using tooldecode::cuda::detail::softmax_cluster_blocks;
  simt::multiprocessors = 132;
  CHECK(softmax_cluster_blocks<float, false>(256, 1000) == 1);
  CHECK(softmax_cluster_blocks<float, false>(256, 32'000) == 2);
  CHECK(softmax_cluster_blocks<float, false>(256, 128'256) == 8);
  CHECK(softmax_cluster_blocks<__half, false>(256, 128'256) == 4);
  CHECK(softmax_cluster_blocks<float, false>(256, 262'144) == 8);
  CHECK(softmax_cluster_blocks<float, false>(256, 1 << 20) == 0);
  CHECK(softmax_cluster_blocks<float, false>(1, 1000) == 1);
  CHECK(softmax_cluster_blocks<float, false>(1, 32'000) == 8);
  CHECK(softmax_cluster_blocks<float, false>(40, 9000) == 2);
  CHECK(softmax_cluster_blocks<float, false>(5, 0) == 1);
  simt::compute_capability = 89;
  CHECK(softmax_cluster_blocks<float, false>(256, 1000) == 0);
  simt::compute_capability = 90;
  simt::code_capability    = 75;  // which a device of 9.0 also runs
  CHECK(softmax_cluster_blocks<float, false>(256, 1000) == 0);
  CHECK(softmax_cluster_blocks<__half, true>(256, 1000) == 0);
  simt::code_capability = 90;
  simt::multiprocessors = 4;
}

#endif
