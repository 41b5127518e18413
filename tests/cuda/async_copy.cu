#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <tooldecode/cuda/async_copy.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int threads = 64;
constexpr int groups  = 3;

enum class Wait { all, all_but_one, none };

/// Each thread copies four numbers per group and writes what its neighbour copied, for the first
/// `read` groups.
__global__ void copy_groups(const float* from, int there, float* to, Wait wait, int read) {
  float* const memory = &shared<float>();
  const int t = static_cast<int>(threadIdx.x), next = (t + 1) % threads;
  for (int group = 0; group < groups; ++group) {
    const int at = 4 * (threads * group + t);
    copy_async(memory + at, t < there ? from + at : nullptr, t < there);
    commit_copies();
  }
  if (wait == Wait::all) wait_for_copies<0>();
  if (wait == Wait::all_but_one) wait_for_copies<1>();
  __syncthreads();
  for (int group = 0; group < read; ++group) {
    for (int i = 0; i < 4; ++i) {
      to[4 * (threads * group + t) + i] = memory[4 * (threads * group + next) + i];
    }
  }
  __syncthreads();
  wait_for_copies<0>();  // shared memory must stay until the last copy arrives
}

std::vector<float> copied(const std::vector<float>& numbers, int there, Wait wait,
                          int read = groups) {
  const DeviceBuffer<float> from(numbers), to(numbers.size());
  launch(copy_groups, {.grid = 1, .block = threads, .shared_bytes = numbers.size() * sizeof(float)},
         nullptr, from.data(), there, to.data(), wait, read);
  return to.download();
}

std::vector<float> numbers() {
  std::vector<float> values(4 * threads * groups);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

}  // namespace

TEST_CASE("copy_async copies 16 bytes and writes zeros if the source is not there") {
  test::on_device([] {
    const std::vector<float> values = numbers();
    for (const int there : {threads, 33, 0}) {
      const std::vector<float> got = copied(values, there, Wait::all);
      for (int group = 0; group < groups; ++group) {
        for (int t = 0; t < threads; ++t) {
          const int next = (t + 1) % threads;
          for (int i = 0; i < 4; ++i) {
            const auto at        = static_cast<std::size_t>(4 * (threads * group + t) + i);
            const auto source    = static_cast<std::size_t>(4 * (threads * group + next) + i);
            const float expected = next < there ? values[source] : 0;
            REQUIRE(got[at] == expected);
          }
        }
      }
    }
  });
}

TEST_CASE("wait_for_copies waits for the oldest groups and leaves the given number in flight") {
  test::on_device([] {
    const std::vector<float> values = numbers();
    const std::vector<float> got    = copied(values, threads, Wait::all_but_one, groups - 1);
    for (std::size_t i = 0; i < 4 * threads * (groups - 1); ++i) REQUIRE_FALSE(std::isnan(got[i]));
#if defined(TOOLDECODE_SIMT)  // only the emulator makes an early read visible: as NaN
    const std::vector<float> all = copied(values, threads, Wait::all_but_one);
    for (std::size_t i = 4 * threads * (groups - 1); i < all.size(); ++i) {
      REQUIRE(std::isnan(all[i]));
    }
    for (const float number : copied(values, threads, Wait::none)) REQUIRE(std::isnan(number));
#endif
  });
}
