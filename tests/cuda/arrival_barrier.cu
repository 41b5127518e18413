#include <string>
#include <vector>

#include <tooldecode/cuda/arrival_barrier.cuh>
#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int stages = 2, readers = 2 * warp_size, threads = readers + warp_size;
constexpr int turn_size = 4 * warp_size;  // numbers that are copied together

struct Memory {
  alignas(16) float ring[stages][turn_size];
  ArrivalBarrier arrived[stages], is_free[stages];
};

/// Which waits and arrivals the kernel has.
enum class Handshake { whole, no_wait_for_copies, no_wait_for_readers, one_reader_missing };

/// A warp copies `turns` parts of an array through two stages; two warps write each part reversed.
__global__ void reverse_parts(const float* from, int turns, Handshake handshake, float* to) {
  auto& memory  = shared<Memory>();
  const int t   = static_cast<int>(threadIdx.x);
  const auto at = [](int turn) { return turn % stages; };
  if (t == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      memory.arrived[stage].begin(warp_size);
      memory.is_free[stage].begin(readers);
    }
  }
  __syncthreads();
  if (t >= readers) {
    const int first = 4 * (t - readers);
    for (int turn = 0; turn < turns; ++turn) {
      // The first wait passes: the phase before the first counts as ended.
      if (handshake != Handshake::no_wait_for_readers) {
        memory.is_free[at(turn)].wait((turn / stages & 1) ^ 1);
      }
      copy_async(memory.ring[at(turn)] + first, from + turn * turn_size + first, true);
      memory.arrived[at(turn)].arrive_after_copies();
    }
    commit_copies();
    wait_for_copies<0>();
    return;
  }
  for (int turn = 0; turn < turns; ++turn) {
    if (handshake != Handshake::no_wait_for_copies) {
      memory.arrived[at(turn)].wait(turn / stages & 1);
    }
    for (int i = t; i < turn_size; i += readers) {
      to[turn * turn_size + turn_size - 1 - i] = memory.ring[at(turn)][i];
    }
    if (handshake != Handshake::one_reader_missing || t > 0) memory.is_free[at(turn)].arrive();
  }
}

constexpr int turns = 7;

bool is_there() {
  return code_capability(reverse_parts) >= 90;
}

/// The number of values at the wrong place or missing.
int wrong_after(Handshake handshake) {
  std::vector<float> numbers(turns * turn_size);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const DeviceBuffer<float> from(numbers), to(numbers.size());
  launch(reverse_parts, {.grid = 1, .block = threads, .shared_bytes = sizeof(Memory)}, nullptr,
         from.data(), turns, handshake, to.data());
  const std::vector<float> got = to.download();
  int wrong                    = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t turn = i / turn_size;
    wrong += got[i] == numbers[turn * turn_size + turn_size - 1 - i % turn_size] ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("ArrivalBarrier hands buffers to and fro, phase after phase") {
  test::on_device([] {
    if (!is_there()) return;
    CHECK(wrong_after(Handshake::whole) == 0);
  });
}

#if defined(TOOLDECODE_SIMT)

namespace {

void wait_for_none() {
  shared<Memory>().arrived[0].wait(0);
}

/// Under how many schedules there are wrong values, or a fault whose text has a part.
int seen_faults(Handshake handshake, const std::string& part) {
  int seen = 0;
  test::on_device([&] {
    try {
      seen += wrong_after(handshake) > 0 ? 1 : 0;
    } catch (const simt::Fault& fault) {
      CHECK_THAT(fault.what(), test::contains(part));
      ++seen;
    }
  });
  return seen;
}

}  // namespace

TEST_CASE("ArrivalBarrier: readers that do not wait see what is not there yet") {
  CHECK(seen_faults(Handshake::no_wait_for_copies, "") > 0);
}

TEST_CASE("ArrivalBarrier: copies that do not wait overwrite what is read") {
  CHECK(seen_faults(Handshake::no_wait_for_readers, "") > 0);
}

TEST_CASE("The emulator reports a fault for arrivals that do not come, and for no barrier") {
  CHECK(seen_faults(Handshake::one_reader_missing, "no thread can go on") > 0);
  test::on_device([] {
    std::string fault;
    try {
      launch(wait_for_none, {.grid = 1, .block = 32, .shared_bytes = sizeof(Memory)}, nullptr);
    } catch (const simt::Fault& error) {
      fault = error.what();
    }
    CHECK_THAT(fault, test::contains("has not begun"));
  });
}

#endif
