// Tests of the emulator: which faults it must report, and which errors its schedules must show.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

#if defined(TOOLDECODE_SIMT)

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

struct Memory {
  float numbers[256];
};

/// The fault of a kernel of 64 threads under each schedule; empty if there is none.
template <class... A>
std::vector<std::string> faults(void (*kernel)(A...), A... arguments) {
  std::vector<std::string> found;
  test::on_every_schedule([&] {
    found.emplace_back();
    try {
      launch(kernel, {.grid = 1, .block = 64, .shared_bytes = sizeof(Memory)}, nullptr,
             arguments...);
    } catch (const simt::Fault& fault) {
      found.back() = fault.what();
    }
  });
  return found;
}

void require_faults(const std::vector<std::string>& found, const std::string& part) {
  for (const std::string& fault : found) CHECK_THAT(fault, test::contains(part));
}

void barrier_of_half() {
  if (threadIdx.x < 32) __syncthreads();
}
void two_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
void shuffle_of_half_with_whole_mask() {
  if (lane_index() < 16) static_cast<void>(__shfl_sync(whole_warp, 1, 0));
}
void lane_outside_its_mask() {
  if (lane_index() < 17) static_cast<void>(__ballot_sync(0xFFFFU, 1));
}
void different_masks() {
  static_cast<void>(__ballot_sync(lane_index() < 16 ? 0xFFFFU : whole_warp, 1));
}
void source_outside_the_mask() {
  if (lane_index() < 16) static_cast<void>(__shfl_sync(0xFFFFU, 1, 20));
}
void different_operations() {
  if (lane_index() < 16) {
    static_cast<void>(__ballot_sync(whole_warp, 1));
  } else {
    static_cast<void>(__any_sync(whole_warp, 1));
  }
}
void barrier_in_one_warp_and_shuffle_in_it() {
  if (lane_index() < 16) {
    __syncthreads();
  } else {
    static_cast<void>(__ballot_sync(whole_warp, 1));
  }
}

void sound(int* out) {
  auto& memory                = shared<Memory>();
  memory.numbers[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  const float other = memory.numbers[63 - threadIdx.x];
  int half          = 0;
  if (lane_index() < 16) half = __shfl_xor_sync(0xFFFFU, lane_index(), 1);
  out[threadIdx.x] =
      static_cast<int>(other) + 100 * half + 10000 * __syncthreads_count(lane_index() < 3);
}
void without_a_barrier(float* out) {
  auto& memory                = shared<Memory>();
  memory.numbers[threadIdx.x] = static_cast<float>(threadIdx.x);
  out[threadIdx.x]            = memory.numbers[63 - threadIdx.x];
}
// A block's sum in which early threads overwrite parts: right only while warps run in step.
void without_the_second_barrier(float* out) {
  auto& memory = shared<Memory>();
  for (int round = 0; round < 2; ++round) {
    const auto sum = warp_sum(static_cast<float>(threadIdx.x + round));
    if (lane_index() == 0) memory.numbers[warp_index()] = sum;
    __syncthreads();
    out[64 * round + threadIdx.x] = memory.numbers[0] + memory.numbers[1];
  }
}

// Races, and kernels without one; each of them passes under every schedule.
void shuffle_instead_of_a_barrier(float* out) {
  auto& memory = shared<Memory>();
  if (lane_index() == 0) memory.numbers[warp_index()] = static_cast<float>(threadIdx.x);
  static_cast<void>(__shfl_sync(whole_warp, 1, 0));
  out[threadIdx.x] = memory.numbers[warp_index()];
}
void barrier_of_the_warp(float* out) {
  auto& memory = shared<Memory>();
  if (lane_index() == 0) memory.numbers[warp_index()] = static_cast<float>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = memory.numbers[warp_index()];
  __syncwarp();
  if (lane_index() == 7) memory.numbers[warp_index()] = 0;
}
void barrier_of_some_lanes(float* out) {
  auto& memory = shared<Memory>();
  if (lane_index() == 0) memory.numbers[warp_index()] = 1;
  if (lane_index() < 16) __syncwarp(0xFFFFU);
  if (lane_index() == 16) out[threadIdx.x] = memory.numbers[warp_index()];
}
void write_after_a_read(float* out) {
  auto& memory                = shared<Memory>();
  memory.numbers[threadIdx.x] = 1;
  __syncwarp();
  const float next = memory.numbers[threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32];
  static_cast<void>(__ballot_sync(whole_warp, 1));
  memory.numbers[threadIdx.x] = next;
  out[threadIdx.x]            = next;
}
void barrier_of_a_warp_for_two(float* out) {
  auto& memory = shared<Memory>();
  if (threadIdx.x == 0) memory.numbers[0] = 1;
  __syncwarp();
  if (threadIdx.x == 32) out[0] = memory.numbers[0];
}
void shuffle_for_device_memory(float* out) {
  if (lane_index() == 0) out[64 + warp_index()] = 1;
  __threadfence();
  static_cast<void>(__shfl_sync(whole_warp, 1, 0));
  out[threadIdx.x] = out[64 + warp_index()];
}
void bytes_side_by_side(float* out) {
  auto* const bytes  = &shared<unsigned char>();
  bytes[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = bytes[63 - threadIdx.x];
}
void atomics_of_all(float* out) {
  auto* const counter = reinterpret_cast<unsigned*>(out + 64);
  atomicAdd(counter, 1U);
}
void atomic_and_a_read(float* out) {
  auto* const counter = reinterpret_cast<unsigned*>(out + 64);
  atomicAdd(counter, 1U);
  if (threadIdx.x == 3) out[3] = static_cast<float>(*counter);
}
void copy_into_what_is_read(float* out) {
  auto& memory                = shared<Memory>();
  memory.numbers[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 5) out[0] = memory.numbers[3];
  if (threadIdx.x == 0) copy_async(&memory, out + 64, true);
  commit_copies();
  __syncthreads();
  wait_for_copies<0>();
}
void blocks_that_meet(float* out) {
  if (threadIdx.x == 0) out[blockIdx.x / 2] = 1;
}

void arrivals(unsigned* counter, unsigned* out) {
  out[threadIdx.x] = atomicAdd(counter, 1U);
}
void blocks_in_turn(unsigned* counter, unsigned* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(counter, 1U);
}

}  // namespace

TEST_CASE("The emulator reports a fault for what hardware leaves undefined") {
  require_faults(faults(barrier_of_half), "ended");
  require_faults(faults(two_barriers), "different barriers");
  require_faults(faults(shuffle_of_half_with_whole_mask), "ended");
  require_faults(faults(lane_outside_its_mask), "not in its mask");
  for (const std::string& fault : faults(different_masks)) CHECK_FALSE(fault.empty());
  require_faults(faults(source_outside_the_mask), "reads a lane outside the mask");
  require_faults(faults(different_operations), "different operations");
  require_faults(faults(barrier_in_one_warp_and_shuffle_in_it), "no thread can go on");
}

TEST_CASE("The emulator runs valid kernels, also after a fault") {
  const DeviceBuffer<int> out(64);
  for (const std::string& fault : faults(sound, out.data())) CHECK(fault.empty());
  const std::vector<int> got = out.download();
  for (int t = 0; t < 64; ++t) {
    const int half = t % 32 < 16 ? (t % 32) ^ 1 : 0;
    CHECK(got[t] == 63 - t + 100 * half + 10000 * 6);
  }
}

TEST_CASE("The emulator reports races under every schedule if it sees accesses") {
  const DeviceBuffer<float> out(128);
  const auto check_race = [&](void (*kernel)(float*)) {
    for (const std::string& fault : faults(kernel, out.data())) {
      CHECK(fault.empty() == !simt::races.is_watching);
      if (simt::races.is_watching) CHECK_THAT(fault, test::contains("threads race"));
    }
  };
  const auto check_sound = [&](void (*kernel)(float*)) {
    for (const std::string& fault : faults(kernel, out.data())) CHECK(fault.empty());
  };
  check_race(shuffle_instead_of_a_barrier);
  check_race(barrier_of_some_lanes);
  check_race(write_after_a_read);
  check_race(barrier_of_a_warp_for_two);
  check_race(shuffle_for_device_memory);
  check_race(atomic_and_a_read);
  check_race(copy_into_what_is_read);
  check_sound(barrier_of_the_warp);
  check_sound(bytes_side_by_side);
  check_sound(atomics_of_all);
  const auto run_blocks = [&] {
    launch(blocks_that_meet, {.grid = 2, .block = 32}, nullptr, out.data());
  };
  if (simt::races.is_watching) {
    CHECK_THROWS_AS(run_blocks(), simt::Fault);
  } else {
    CHECK_NOTHROW(run_blocks());
  }
  for (int i = 0; i < 2; ++i) {  // launches run one after another
    CHECK_NOTHROW(launch(blocks_that_meet, {.grid = 1, .block = 32}, nullptr, out.data()));
  }
}

TEST_CASE("The emulator's shared memory is NaN until it is written") {
  const DeviceBuffer<float> out(64);
  if (simt::races.is_watching) {  // the race is reported first
    require_faults(faults(without_a_barrier, out.data()), "threads race");
    return;
  }
  for (const std::string& fault : faults(without_a_barrier, out.data())) CHECK(fault.empty());
  int poisoned = 0;
  for (const float x : out.download()) poisoned += x != x;
  CHECK(poisoned > 0);
}

TEST_CASE("The emulator's skewed schedules reveal a missing barrier") {
  if (simt::races.is_watching) {
    const DeviceBuffer<float> sums(128);
    require_faults(faults(without_the_second_barrier, sums.data()), "threads race");
    return;
  }
  std::set<bool> right;
  test::on_every_schedule([&] {
    const DeviceBuffer<float> out(128);
    launch(without_the_second_barrier, {.grid = 1, .block = 64, .shared_bytes = sizeof(Memory)},
           nullptr, out.data());
    bool all = true;
    for (int i = 0; i < 128; ++i) all = all && out.download()[i] == (i < 64 ? 2016 : 2016 + 64);
    right.insert(all);
  });
  CHECK(right == std::set<bool>{false, true});  // lockstep hides it
}

TEST_CASE("The emulator's schedules differ in the order of atomics and of blocks") {
  std::set<std::vector<unsigned>> threads, blocks;
  test::on_every_schedule([&] {
    const DeviceBuffer<unsigned> counter(1), out(64);
    launch(arrivals, {.grid = 1, .block = 64}, nullptr, counter.data(), out.data());
    threads.insert(out.download());
    const DeviceBuffer<unsigned> block_counter(1), block_out(8);
    launch(blocks_in_turn, {.grid = 8, .block = 32}, nullptr, block_counter.data(),
           block_out.data());
    blocks.insert(block_out.download());
  });
  CHECK(threads.size() == 3);
  CHECK(blocks.size() == 3);
}

TEST_CASE("The emulator captures a graph without running it and runs it at each launch") {
  const DeviceBuffer<unsigned> counter(1), out(64);
  cudaStream_t stream  = nullptr;
  cudaGraph_t graph    = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch(arrivals, {.grid = 1, .block = 64}, stream, counter.data(), out.data());
  float* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK_THROWS_AS(counter.download(), Error);
  check(cudaStreamEndCapture(stream, &graph));
  CHECK(counter.download() == std::vector<unsigned>{0});
  check(cudaGraphInstantiate(&exec, graph));
  check(cudaGraphLaunch(exec, stream));
  check(cudaGraphLaunch(exec, stream));
  CHECK(counter.download() == std::vector<unsigned>{128});
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
}

#endif
