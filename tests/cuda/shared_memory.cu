#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int threads = 64;

struct Memory {
  int reversed[threads];
  int sum;
};

__global__ void reverse(int* out) {
  auto& memory = shared<Memory>();
  const int t  = static_cast<int>(threadIdx.x);
  const int b  = static_cast<int>(blockIdx.x);
  if (t == 0) memory.sum = 1000 * b;
  memory.reversed[threads - 1 - t] = t;
  __syncthreads();
  out[b * threads + t] = memory.sum + shared<Memory>().reversed[t];
}

}  // namespace

TEST_CASE("shared returns one structure to all threads of a block and another one to each block") {
  test::on_device([] {
    const DeviceBuffer<int> out(3 * threads);
    launch(reverse, {.grid = 3, .block = threads, .shared_bytes = sizeof(Memory)}, nullptr,
           out.data());
    const std::vector<int> got = out.download();
    for (int i = 0; i < 3 * threads; ++i) {
      CHECK(got[static_cast<std::size_t>(i)] == 1000 * (i / threads) + threads - 1 - i % threads);
    }
  });
}
