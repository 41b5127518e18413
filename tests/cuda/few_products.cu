#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/few_products.cuh>
#include <tooldecode/cuda/number.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr unsigned seed = 17;

template <HalfNumber T>
void check_products(int height, int width, int rows) {
  INFO("seed " << seed << ": " << height << " by " << width << ", " << rows << " vectors");
  std::mt19937 random(seed);
  const auto size    = [](int a, int b) { return static_cast<std::size_t>(a * b); };
  const auto weights = test::normal_numbers<T>(size(height, width), random);
  const auto vectors = test::normal_numbers<T>(size(rows, width), random);
  std::vector<float> before(size(rows, height));
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i % 7);
  const DeviceBuffer<T> matrix(weights), x(vectors);
  const DeviceBuffer<float> sums(before);
  multiply_few(PairedRows<T>{matrix.data(), height / 2, width}, rows,
               PlainVectors<T>{x.data(), width}, AddedProducts{sums.data(), height},
               device_traits(), nullptr);
  const auto result = sums.download();
  double worst      = 0;
  bool is_finite    = true;
  for (int r = 0; r < rows; ++r) {
    for (int row = 0; row < height; ++row) {
      double sum = 0, magnitude = 1e-30;
      for (int c = 0; c < width; ++c) {
        const double term =
            static_cast<double>(to_float(weights[size(row, width) + static_cast<std::size_t>(c)])) *
            static_cast<double>(to_float(vectors[size(r, width) + static_cast<std::size_t>(c)]));
        sum += term;
        magnitude += std::abs(term);
      }
      const std::size_t at = size(r, height) + static_cast<std::size_t>(row);
      sum += static_cast<double>(before[at]);
      is_finite = is_finite && std::isfinite(result[at]);
      worst     = std::max(worst, std::abs(static_cast<double>(result[at]) - sum) /
                                      (magnitude + static_cast<double>(before[at])));
    }
  }
  CHECK(is_finite);
  CHECK(worst < test::tolerance<float>());
}

}  // namespace

TEST_CASE("multiply_few: adds the products that float64 gives") {
  test::on_device([] {
    check_products<__half>(2, 8, 1);
    check_products<__half>(210, 1304, 1);  // more pairs than warps, and part of a batch of packs
    check_products<__half>(34, 2048, 4);
    check_products<__nv_bfloat16>(34, 520, 3);
    check_products<__nv_bfloat16>(18, 1024, 2);
  });
}
