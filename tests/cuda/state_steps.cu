#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/state_steps.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int size = 64, threads = 32;

__global__ void find_steps(const StateStep* asked, int count, StateSteps steps, StateMisses misses,
                           std::int32_t* found) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= count) return;
  found[i] = steps.find(asked[i].from, asked[i].token);
  if (found[i] < 0) misses.note(asked[i].from, asked[i].token);
}

LaunchShape per_step(int count) {
  return {.grid = static_cast<unsigned>(divide_up(count, threads)), .block = threads};
}

}  // namespace

TEST_CASE("StateSteps, half full: finds what was inserted, and notes what was not") {
  test::on_device([] {
    std::mt19937 random{1};
    std::map<std::pair<std::int32_t, TokenId>, std::int32_t> known;
    std::vector<StateStep> inserted, asked;
    while (inserted.size() < size / 2) {
      const StateStep step{static_cast<std::int32_t>(random() % 20),
                           static_cast<TokenId>(random() % 5),
                           static_cast<std::int32_t>(random() % 1000)};
      if (known.try_emplace({step.from, step.token}, step.to).second) inserted.push_back(step);
    }
    for (std::int32_t from = 0; from < 21; ++from) {
      for (TokenId token = 0; token < 6; ++token) asked.push_back({from, token});
    }
    const auto count = static_cast<int>(asked.size());
    const int most   = 7;  // fewer than are missed
    const DeviceBuffer<unsigned long long> keys(std::vector<unsigned long long>(size, 0));
    const DeviceBuffer<std::int32_t> states(size), found(asked.size());
    const DeviceBuffer<StateStep> given(inserted), wanted(asked), missed(most);
    const DeviceBuffer<int> misses(std::vector<int>{0});
    const StateSteps steps{keys.data(), states.data(), size};
    launch(tooldecode::cuda::detail::insert_steps<threads>,
           per_step(static_cast<int>(inserted.size())), nullptr, given.data(),
           static_cast<int>(inserted.size()), steps);
    launch(find_steps, per_step(count), nullptr, wanted.data(), count, steps,
           StateMisses{missed.data(), misses.data(), most}, found.data());
    const auto got = found.download();
    for (std::size_t i = 0; i < asked.size(); ++i) {
      INFO("step " << asked[i].from << ", " << asked[i].token);
      const auto expected = known.find({asked[i].from, asked[i].token});
      REQUIRE(got[i] == (expected == known.end() ? -1 : expected->second));
    }
    CHECK(misses.download() == std::vector<int>{count - size / 2});
    for (const StateStep& step : missed.download()) {
      CHECK(known.find({step.from, step.token}) == known.end());
      CHECK(step.to == -1);
    }
  });
}
