#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/tensor_core.cuh>
#include <tooldecode/cuda/warp.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

template <class T>
__global__ void multiply(const T* a, const T* b, float* c) {  // [16, 16], [16, 8], [16, 8]
  const int g = lane_index() / 4, t = lane_index() % 4;
  const auto of_a = [&](int row, int column) {
    return pack_two(a[16 * row + column], a[16 * row + column + 1]);
  };
  const auto of_b = [&](int row) { return pack_two(b[8 * row + g], b[8 * (row + 1) + g]); };
  float sums[4]   = {c[8 * g + 2 * t], c[8 * g + 2 * t + 1], c[8 * (g + 8) + 2 * t],
                     c[8 * (g + 8) + 2 * t + 1]};
  multiply_add<T>(sums,
                  {of_a(g, 2 * t), of_a(g + 8, 2 * t), of_a(g, 2 * t + 8), of_a(g + 8, 2 * t + 8)},
                  {of_b(2 * t), of_b(2 * t + 8)});
  for (int i = 0; i < 4; ++i) c[8 * (g + 8 * (i / 2)) + 2 * t + i % 2] = sums[i];
}

template <class T>
void check_products(unsigned seed) {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto a = test::normal_numbers<T>(16 * 16, random);
  const auto b = test::normal_numbers<T>(16 * 8, random);
  const auto c = test::normal_numbers<float>(16 * 8, random);
  const DeviceBuffer<T> left(a), right(b);
  const DeviceBuffer<float> sums(c);
  launch(multiply<T>, {.grid = 1, .block = warp_size}, nullptr, left.data(), right.data(),
         sums.data());
  const std::vector<float> got = sums.download();
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      double sum = c[8 * row + column], size = std::abs(sum);
      for (std::size_t i = 0; i < 16; ++i) {
        const double term = static_cast<double>(to_float(a[16 * row + i])) *
                            static_cast<double>(to_float(b[8 * i + column]));
        sum += term;
        size += std::abs(term);
      }
      // Products are exact; hardware may drop low bits of the sum.
      CHECK(std::abs(got[8 * row + column] - sum) <= 1e-5 * size);
    }
  }
}

template <class T>
__global__ void pack(const T* numbers, std::uint32_t* words) {
  words[threadIdx.x] = pack_two(numbers[2 * threadIdx.x], numbers[2 * threadIdx.x + 1]);
}

}  // namespace

TEST_CASE("multiply_add equals the product of small matrices") {
  test::on_device([] {
    for (const unsigned seed : {1U, 2U, 3U}) {
      check_products<__half>(seed);
      check_products<__nv_bfloat16>(seed);
    }
  });
}

TEST_CASE("pack_two stores the first number in the lower half") {
  test::on_device([] {
    const DeviceBuffer<__half> numbers({from_float<__half>(1), from_float<__half>(-2),
                                        from_float<__half>(0), from_float<__half>(0.5F)});
    const DeviceBuffer<std::uint32_t> words(2);
    launch(pack<__half>, {.grid = 1, .block = 2}, nullptr, numbers.data(), words.data());
    CHECK(words.download() == std::vector<std::uint32_t>{0xC0003C00U, 0x38000000U});
  });
}
