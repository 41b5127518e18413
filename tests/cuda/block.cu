#include <numeric>
#include <random>
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
  out[threadIdx.x] = Fold::sum(shared<Fold::Storage>(), values[threadIdx.x]);
}

}  // namespace

TEST_CASE("BlockFold returns the folds of a block in all threads") {
  test::on_device([] {
    std::mt19937 random(1);
    std::vector<int> values(threads);
    for (int& value : values) value = static_cast<int>(random() % 1000) - 500;
    const DeviceBuffer<int> in(values);
    const DeviceBuffer<int> out(threads);
    launch(fold_values, {.grid = 1, .block = threads, .shared_bytes = sizeof(Fold::Storage)},
           nullptr, in.data(), out.data());
    const std::vector<int> got = out.download();
    CHECK(got == std::vector<int>(threads, std::accumulate(values.begin(), values.end(), 0)));
  });
}
