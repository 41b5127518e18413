#include <vector>

#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int threads = 96;
using Fold            = BlockFold<int, threads>;

__global__ void fold_values(const int* values, int* out) {
  auto& memory               = shared<Fold::Storage>();
  const int value            = values[threadIdx.x];
  out[threadIdx.x]           = Fold::sum(memory, value);
  out[threads + threadIdx.x] = Fold::greatest(memory, value);
}

}  // namespace

TEST_CASE("BlockFold returns the folds of a block in all threads") {
  test::on_device([] {
    std::mt19937 random(1);
    std::vector<int> values(threads);
    for (int& value : values) value = static_cast<int>(random() % 1000) - 500;
    const DeviceBuffer<int> in(values);
    const DeviceBuffer<int> out(2 * threads);
    launch(fold_values, {.grid = 1, .block = threads, .shared_bytes = sizeof(Fold::Storage)},
           nullptr, in.data(), out.data());
    const std::vector<int> got = out.download();
    int sum = 0, greatest = -1000;
    for (int t = 0; t < threads; ++t) {
      sum += values[t];
      greatest = std::max(greatest, values[t]);
    }
    for (int t = 0; t < threads; ++t) {
      CHECK(got[t] == sum);
      CHECK(got[threads + t] == greatest);
    }
  });
}
