#include <string>
#include <vector>

#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/cluster.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int threads = 48;  // not a multiple of the warp size

struct Entry {
  float block, thread;
  int sum;
};
struct Memory {
  alignas(16) float copied[4];
  Entry entries[threads];
};

/// Which of the two cluster barriers the kernel has.
enum class Barriers { both, first, last };

/// Each thread writes what the thread of the mirrored index in the next block stored.
__global__ void exchange(const float* from, int blocks, Barriers barriers, Entry* out) {
  auto& memory   = shared<Memory>();
  const int b    = static_cast<int>(blockIdx.x);
  const int t    = static_cast<int>(threadIdx.x);
  const int next = (b % blocks + 1) % blocks;
  if (t == 0) {
    copy_async(memory.copied, from + 4 * b, true);
    commit_copies();
    wait_for_copies<0>();
  }
  const int threads_here = __syncthreads_count(1);
  memory.entries[t]      = {memory.copied[b % 4], static_cast<float>(t), 1000 * b + threads_here};
  if (barriers != Barriers::last) cluster_barrier();
  out[b * threads + t] = load_from_block(&memory.entries[threads - 1 - t], next);
  if (barriers != Barriers::first) cluster_barrier();
}

std::vector<Entry> exchanged(int clusters, int blocks, Barriers barriers) {
  const auto count = static_cast<std::size_t>(clusters * blocks);
  std::vector<float> numbers(4 * count);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i / 4);
  const DeviceBuffer<float> from(numbers);
  const DeviceBuffer<Entry> out(count * threads);
  launch(exchange,
         {.grid         = static_cast<unsigned>(clusters * blocks),
          .block        = threads,
          .shared_bytes = sizeof(Memory),
          .cluster      = static_cast<unsigned>(blocks)},
         nullptr, from.data(), blocks, barriers, out.data());
  return out.download();
}

}  // namespace

TEST_CASE("load_from_block reads what another block wrote before the cluster barrier") {
  test::on_device([] {
    if (code_capability(exchange) < 90) return;
    for (const int blocks : {1, 2, 4, 7, max_cluster_blocks}) {
      constexpr int clusters       = 3;
      const std::vector<Entry> got = exchanged(clusters, blocks, Barriers::both);
      for (int i = 0; i < clusters * blocks * threads; ++i) {
        const int b        = i / threads;
        const int next     = b / blocks * blocks + (b % blocks + 1) % blocks;
        const Entry& entry = got[static_cast<std::size_t>(i)];
        REQUIRE(entry.block == static_cast<float>(next));
        REQUIRE(entry.thread == static_cast<float>(threads - 1 - i % threads));
        REQUIRE(entry.sum == 1000 * next + threads);
      }
    }
  });
}

#if defined(TOOLDECODE_SIMT)

namespace {

void barrier_of_half() {
  if (threadIdx.x < 32) cluster_barrier();
}
void barrier_of_one_block() {
  if (blockIdx.x == 1) cluster_barrier();
}
void two_barriers() {
  if (blockIdx.x == 1) {
    cluster_barrier();
  } else {
    cluster_barrier();
  }
}
void barriers_of_block_and_cluster() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    cluster_barrier();
  }
}
void block_that_is_not_there() {
  static_cast<void>(load_from_block(&shared<float>(), 2));
}
void own_memory() {
  const float number = 1;
  static_cast<void>(load_from_block(&number, 1));
}

void require_faults(void (*kernel)(), const std::string& part) {
  test::on_device([&] {
    std::string fault;
    try {
      launch(kernel, {.grid = 2, .block = 64, .shared_bytes = sizeof(Memory), .cluster = 2},
             nullptr);
    } catch (const simt::Fault& error) {
      fault = error.what();
    }
    CHECK_THAT(fault, test::contains(part));
  });
}

}  // namespace

TEST_CASE("The emulator reports a fault for undefined uses of clusters") {
  require_faults(barrier_of_half, "ended");
  require_faults(barrier_of_one_block, "ended");
  require_faults(two_barriers, "different barriers");
  require_faults(barriers_of_block_and_cluster, "no thread can go on");
  require_faults(block_that_is_not_there, "a block that the cluster has not");
  require_faults(own_memory, "outside the block's shared memory");
}

TEST_CASE("load_from_block reads NaN before the other block has written") {
  int poisoned = 0;
  test::on_device([&] {
    try {
      for (const Entry& entry : exchanged(2, 4, Barriers::last))
        poisoned += entry.thread != entry.thread;
    } catch (const simt::Fault& fault) {
      CHECK(simt::races.is_watching);  // the race is reported first
      CHECK_THAT(fault.what(), test::contains("threads race"));
      ++poisoned;
    }
  });
  CHECK(poisoned > 0);
}

TEST_CASE("The emulator reports a fault if a block ends before others read its memory") {
  int faults = 0;
  test::on_device([&] {
    try {
      static_cast<void>(exchanged(2, 4, Barriers::first));
    } catch (const simt::Fault& fault) {
      CHECK_THAT(fault.what(), test::contains("a block has ended"));
      ++faults;
    }
  });
  CHECK(faults > 0);
}

TEST_CASE("launch with a cluster fails below compute capability 9.0") {
  simt::compute_capability = 89;
  CHECK_THROWS_AS(exchanged(1, 2, Barriers::both), Error);
  CHECK_NOTHROW(exchanged(1, 1, Barriers::both));
  simt::compute_capability = 90;
}

#endif
