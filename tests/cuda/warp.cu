#include <algorithm>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/warp.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int threads = 96;

__global__ void fold_warps(const int* values, int* out) {
  const int value = values[threadIdx.x];
  int* const mine = out + 5 * threadIdx.x;
  mine[0]         = warp_sum(value);
  mine[1]         = warp_greatest(value);
  mine[2]         = warp_fold(value, [](int a, int b) { return a ^ b; });
  mine[3]         = lane_index();
  mine[4]         = warp_index();
}

}  // namespace

TEST_CASE("warp_sum and warp_greatest return the result to all lanes") {
  test::on_device([] {
    std::mt19937 random(3);
    std::vector<int> values(threads);
    for (int& value : values) value = static_cast<int>(random() % 1000) - 500;
    const DeviceBuffer<int> in(values);
    const DeviceBuffer<int> out(5 * threads);
    launch(fold_warps, {.grid = 1, .block = threads}, nullptr, in.data(), out.data());
    const std::vector<int> got = out.download();
    for (int t = 0; t < threads; ++t) {
      const auto first = values.begin() + t / warp_size * warp_size;
      int sum = 0, bits = 0;
      std::for_each(first, first + warp_size, [&](int value) {
        sum += value;
        bits ^= value;
      });
      CHECK(got[5 * t] == sum);
      CHECK(got[5 * t + 1] == *std::max_element(first, first + warp_size));
      CHECK(got[5 * t + 2] == bits);
      CHECK(got[5 * t + 3] == t % 32);
      CHECK(got[5 * t + 4] == t / 32);
    }
  });
}
