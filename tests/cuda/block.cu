#include <cstdint>
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

struct FoldShared {
  BlockFold<int, threads>::Storage fold;
  BlockScan<int, threads>::Storage scan;
};

__global__ void fold_and_scan(const int* values, int* out) {
  auto& memory               = shared<FoldShared>();
  const int value            = values[threadIdx.x];
  int total                  = 0;
  out[threadIdx.x]           = BlockFold<int, threads>::sum(memory.fold, value);
  out[threads + threadIdx.x] = BlockFold<int, threads>::greatest(memory.fold, value);
  out[2 * threads + threadIdx.x] =
      BlockScan<int, threads>::exclusive_sum(memory.scan, value, total);
  out[3 * threads + threadIdx.x] = total;
}

__global__ void sort_keys(const std::uint64_t* from, std::uint64_t* to) {
  auto& storage = shared<BlockSort<threads, 2>::Storage>();
  std::uint64_t keys[2];
  for (int i = 0; i < 2; ++i) keys[i] = from[threadIdx.x + threads * i];
  BlockSort<threads, 2>::descending(storage, keys);
  for (int i = 0; i < 2; ++i) to[2 * threadIdx.x + i] = keys[i];
}

}  // namespace

TEST_CASE("BlockFold and BlockScan return the folds and exclusive sums of a block") {
  test::on_device([] {
    std::mt19937 random(1);
    std::vector<int> values(threads);
    for (int& value : values) value = static_cast<int>(random() % 1000) - 500;
    const DeviceBuffer<int> in(values);
    const DeviceBuffer<int> out(4 * threads);
    launch(fold_and_scan, {.grid = 1, .block = threads, .shared_bytes = sizeof(FoldShared)},
           nullptr, in.data(), out.data());
    const std::vector<int> got = out.download();
    int sum = 0, greatest = -1000;
    for (int t = 0; t < threads; ++t) {
      CHECK(got[2 * threads + t] == sum);
      sum += values[t];
      greatest = std::max(greatest, values[t]);
    }
    for (int t = 0; t < threads; ++t) {
      CHECK(got[t] == sum);
      CHECK(got[threads + t] == greatest);
      CHECK(got[3 * threads + t] == sum);
    }
  });
}

TEST_CASE("BlockSort sorts a block's keys in descending order") {
  test::on_device([] {
    std::mt19937_64 random(2);
    std::vector<std::uint64_t> keys(2 * threads);
    for (auto& key : keys) key = random() >> random() % 60;
    const DeviceBuffer<std::uint64_t> in(keys);
    const DeviceBuffer<std::uint64_t> out(keys.size());
    launch(sort_keys,
           {.grid = 1, .block = threads, .shared_bytes = sizeof(BlockSort<threads, 2>::Storage)},
           nullptr, in.data(), out.data());
    std::sort(keys.begin(), keys.end(), std::greater<>());
    CHECK(out.download() == keys);
  });
}
