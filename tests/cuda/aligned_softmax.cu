#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include <tooldecode/cuda/aligned_softmax.cuh>
#include <tooldecode/cuda/device_buffer.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::AlignedSoftmaxShape;
using tooldecode::cuda::detail::MaskedRow;
using tooldecode::cuda::detail::SoftmaxClusterPlan;

/// A cluster of `blocks` holds a row, with so many packs of a part in registers.
template <Number T>
SoftmaxClusterPlan plan_for(std::size_t vocabulary, int blocks, bool is_wide = false,
                            int packs_in_registers = 0) {
  const int part = MaskedRow<T>::part_packs(static_cast<int>(vocabulary), blocks);
  return {.blocks         = blocks,
          .is_wide        = is_wide,
          .packs_in_block = std::max(part - packs_in_registers, 1)};
}

/// Rows of logits and their masks; without masks every token is allowed.
template <Number T>
struct Rows {
  std::size_t count, vocabulary;
  std::vector<T> logits;             // [B, V]
  std::vector<std::uint32_t> masks;  // [B, ceil(V / 32)] or empty

  Rows(std::size_t count_, std::size_t vocabulary_, double allowed)
      : count(count_), vocabulary(vocabulary_) {
    std::mt19937 random(41);
    logits = test::normal_numbers<T>(count * vocabulary, random, 4);
    for (std::size_t row = 0; row < count && allowed < 1; ++row) {
      const auto mask = test::random_mask(vocabulary, row == 1 ? 0 : allowed, random);
      masks.insert(masks.end(), mask.begin(), mask.end());
    }
  }
  [[nodiscard]] bool is_allowed(std::size_t row, std::size_t token) const {
    const std::size_t words = (vocabulary + 31) / 32;
    return masks.empty() || (masks[row * words + token / 32] >> (token % 32) & 1) != 0;
  }
};

/// The kernel's outputs for a batch.
struct Probabilities {
  std::vector<float> values;  // [B, V]
  std::vector<std::int32_t> kept;
};
template <Number T>
Probabilities probabilities(const Rows<T>& rows, float temperature,
                            const SoftmaxClusterPlan& plan) {
  const DeviceBuffer<T> logits(rows.logits);
  const DeviceBuffer<std::uint32_t> masks(rows.masks);
  const DeviceBuffer<float> values(std::vector<float>(rows.logits.size(), NAN));
  const DeviceBuffer<std::int32_t> kept(std::vector<std::int32_t>(rows.count, -5));
  tooldecode::cuda::detail::launch_aligned_softmax<T>(
      {.logits     = logits.data(),
       .rows       = static_cast<int>(rows.count),
       .vocabulary = static_cast<int>(rows.vocabulary),
       .mask       = rows.masks.empty() ? nullptr : masks.data()},
      temperature, plan, values.data(), kept.data(), nullptr);
  return {values.download(), kept.download()};
}

/// Compares with float64, which limits numbers as LogitsPipeline does.
template <Number T>
void equal_float64(const Rows<T>& rows, float temperature, const SoftmaxClusterPlan& plan) {
  CAPTURE(sizeof(T), rows.count, rows.vocabulary, plan.blocks, plan.is_wide, plan.packs_in_block,
          temperature);
  const Probabilities written = probabilities(rows, temperature, plan);
  for (std::size_t row = 0; row < rows.count; ++row) {
    std::vector<double> distribution(rows.vocabulary);
    double top = -INFINITY, sum = 0;
    std::int32_t kept = 0;
    for (std::size_t t = 0; t < rows.vocabulary; ++t) {
      const float logit = to_float(rows.logits[row * rows.vocabulary + t]);
      const float bound = std::fmin(std::fmax(logit, -1e30F), 1e30F);
      const bool can_be = rows.is_allowed(row, t);
      distribution[t] =
          can_be ? static_cast<double>(temperature == 0 ? bound : bound / temperature) : -INFINITY;
      top = std::max(top, distribution[t]);
      kept += static_cast<int>(can_be);
    }
    for (double& logit : distribution) {
      logit = logit == -INFINITY ? 0 : std::exp(logit - top);
      sum += logit;
    }
    CHECK(written.kept[row] == kept);
    int wrong = 0;
    for (std::size_t t = 0; t < rows.vocabulary; ++t) {
      const double expected = sum == 0 ? 0 : distribution[t] / sum;
      const double p        = static_cast<double>(written.values[row * rows.vocabulary + t]);
      const bool is_right   = std::abs(p - expected) <= std::max(1e-5 * expected, 0x1p-126) &&
                            (expected != 0 || p == 0);
      wrong += static_cast<int>(!is_right);
    }
    CHECK(wrong == 0);
  }
}

bool has_clusters() {
  return code_capability(tooldecode::cuda::detail::aligned_softmax_kernel<float, false>) >= 90;
}

/// Rows with numbers that the limits change: in the first NaN and -infinity, in the second numbers
/// above the limit, in the third no number above -1e30, in the fourth -infinity, in the fifth the
/// lower limit and what is below it, in the last the upper limit and what is above it.
template <Number T>
Rows<T> rows_with_limits(std::size_t vocabulary) {
  Rows<T> rows(6, vocabulary, 0.7);
  rows.masks.resize(rows.masks.size() / 6);
  const auto mask = rows.masks;  // for each row
  for (int row = 1; row < 6; ++row) rows.masks.insert(rows.masks.end(), mask.begin(), mask.end());
  const auto number = [](float x) { return from_float<T>(x); };
  for (std::size_t t = 0; t < vocabulary; ++t) {
    if (t % 5 == 0) rows.logits[t] = number(t % 2 == 0 ? NAN : -INFINITY);
    if (t % 7 == 0) rows.logits[vocabulary + t] = number(t % 2 == 0 ? INFINITY : 3e38F);
    if (t % 7 == 1) rows.logits[vocabulary + t] = number(NAN);
    rows.logits[2 * vocabulary + t] = number(t % 3 == 0 ? NAN : t % 3 == 1 ? -INFINITY : -2e38F);
    if (t % 5 == 0) rows.logits[3 * vocabulary + t] = number(-INFINITY);
    rows.logits[4 * vocabulary + t] = number(t % 3 == 0 ? -1e30F : t % 3 == 1 ? -2e30F : -INFINITY);
    if (t % 5 == 0) rows.logits[5 * vocabulary + t] = number(t % 2 == 0 ? 1e30F : 3e38F);
  }
  return rows;
}

}  // namespace

TEST_CASE("aligned_softmax equals float64 for rows that a cluster holds") {
  test::on_device([] {
    if (!has_clusters()) return;
    for (const int blocks : {1, 2, 4, 8}) {
      equal_float64<float>({2, 1028, 0.7}, 0.8F, plan_for<float>(1028, blocks));
      equal_float64<__nv_bfloat16>({2, 1032, 0.7}, 1, plan_for<__nv_bfloat16>(1032, blocks));
      equal_float64<__half>({3, 8, 0.5}, 1.7F, plan_for<__half>(8, blocks));
    }
    equal_float64<float>({3, 9004, 1}, 1, plan_for<float>(9004, 4));
    equal_float64<__half>({3, 4096, 0.02}, 0, plan_for<__half>(4096, 2));
    equal_float64<__nv_bfloat16>({2, 20'000, 0.001}, 1, plan_for<__nv_bfloat16>(20'000, 1));
  });
}

TEST_CASE("aligned_softmax equals float64 for rows that wide blocks hold") {
  test::on_device([] {
    if (!has_clusters()) return;
    equal_float64<float>({2, 9004, 0.7}, 0.8F, plan_for<float>(9004, 2, true, 900));
    equal_float64<float>({1, 36'000, 0.7}, 1, plan_for<float>(36'000, 2, true));
    equal_float64<__nv_bfloat16>({2, 40'008, 0.7}, 0.8F, plan_for<__nv_bfloat16>(40'008, 2, true));
    equal_float64<__half>({2, 9008, 0.7}, 1, plan_for<__half>(9008, 8, true));
  });
}

TEST_CASE("aligned_softmax equals float64 for rows longer than what is in flight at once") {
  test::on_device([] {
    if (!has_clusters()) return;
    equal_float64<float>({1, 50'000, 0.7}, 1, plan_for<float>(50'000, 1));
    equal_float64<__half>({1, 60'000, 0.7}, 1, plan_for<__half>(60'000, 1));
  });
}

TEST_CASE("aligned_softmax limits NaN, infinities and numbers above 1e30") {
  test::on_device([] {
    if (!has_clusters()) return;
    for (const float temperature : {1.0F, 0.7F}) {
      equal_float64(rows_with_limits<float>(2048), temperature, plan_for<float>(2048, 2));
      equal_float64(rows_with_limits<float>(9004), temperature,
                    plan_for<float>(9004, 2, true, 900));
      equal_float64(rows_with_limits<__half>(2048), temperature, plan_for<__half>(2048, 4));
      equal_float64(rows_with_limits<__nv_bfloat16>(2048), temperature,
                    plan_for<__nv_bfloat16>(2048, 1));
    }
  });
}

TEST_CASE("aligned_softmax gives the same bits in any order of threads") {
  std::set<std::vector<float>> results;
  test::on_device([&] {
    if (!has_clusters()) return;
    const Rows<float> rows(2, 6008, 0.7);
    for (int i = 0; i < 2; ++i) {
      results.insert(probabilities(rows, 1, plan_for<float>(6008, 8)).values);
    }
  });
  CHECK(results.size() <= 1);
}

#if defined(TOOLDECODE_SIMT)

TEST_CASE("plan_aligned_softmax holds rows that fill whole waves in wide blocks") {
  using tooldecode::cuda::detail::plan_aligned_softmax;
  simt::multiprocessors = 132;
  for (const int rows : {50, 64, 66}) {
    CAPTURE(rows);
    CHECK(plan_aligned_softmax<float>(rows, 128'256).is_wide);
    CHECK(plan_aligned_softmax<__half>(rows, 128'256).is_wide);
    CHECK(plan_aligned_softmax<__half>(rows, 128'256).blocks == 2);
  }
  for (const int rows : {116, 132, 256, 1 << 30}) {
    CAPTURE(rows);
    CHECK(plan_aligned_softmax<float>(rows, 128'256).is_wide);
    CHECK(!plan_aligned_softmax<__half>(rows, 128'256).is_wide);
  }
  for (const int rows : {1, 49, 67, 115, 133}) {
    CAPTURE(rows);
    CHECK(!plan_aligned_softmax<float>(rows, 128'256).is_wide);
    CHECK(!plan_aligned_softmax<__half>(rows, 128'256).is_wide);
  }
  simt::code_capability = 75;
  CHECK(plan_aligned_softmax<__half>(64, 128'256).blocks == 0);
  simt::code_capability = 90;
  simt::multiprocessors = 4;
}

#endif
