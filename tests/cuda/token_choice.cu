#include <cmath>
#include <cstdint>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/token_choice.cuh>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::Choice;
using tooldecode::cuda::detail::GreedyChoice;
using tooldecode::cuda::detail::GumbelChoice;
using tooldecode::cuda::detail::TokenPack;

/// One warp chooses among logits that are not NaN; -infinity is not allowed.
template <int n, bool is_greedy>
__global__ void choose(const float* logits, int size, NoiseKeys keys, std::int64_t position,
                       TokenId* token) {
  const auto choose_by = [&](auto mine) {
    for (int base = 0; base < size; base += n * warp_size) {
      const int first = base + n * lane_index();
      TokenPack<n> tokens{first, 0, 0, {}};
      for (int i = 0; i < n; ++i) {
        const bool is_there = first + i < size;
        tokens.logits[i]    = is_there ? logits[first + i] : 0;
        tokens.count += static_cast<int>(is_there);
        if (is_there && tokens.logits[i] > -INFINITY) tokens.allowed |= 1U << i;
      }
      mine.see(tokens);
    }
    return mine.choice().of_warp();
  };
  Choice best{};
  if constexpr (is_greedy) {
    best = choose_by(GreedyChoice{});
  } else {
    best = choose_by(GumbelChoice(keys, static_cast<std::uint64_t>(position), 1));
  }
  if (lane_index() == 0) *token = best.token;
}

template <int n>
void choices_equal_the_hosts(const std::vector<float>& logits, std::int64_t position) {
  CAPTURE(n, logits.size(), position);
  const DeviceBuffer<float> numbers(logits);
  const DeviceBuffer<TokenId> token(1);
  constexpr std::uint64_t seed = 77;
  const auto size              = static_cast<int>(logits.size());
  const LaunchShape shape{.grid = 1, .block = warp_size};
  launch(choose<n, false>, shape, nullptr, numbers.data(), size, NoiseKeys(seed), position,
         token.data());
  CHECK(token.download()[0] ==
        find_token(logits, 1, {seed, static_cast<std::uint64_t>(position)}).value_or(-1));
  launch(choose<n, true>, shape, nullptr, numbers.data(), size, NoiseKeys(seed), position,
         token.data());
  CHECK(token.download()[0] == find_token(logits, 0, {}).value_or(-1));
}

}  // namespace

TEST_CASE("GumbelChoice and GreedyChoice choose the host's tokens") {
  test::on_device([] {
    std::mt19937 random(41);
    for (std::int64_t position = 0; position < 60; ++position) {
      std::vector<float> logits = test::normal_numbers<float>(1 + random() % 700, random, 2);
      for (float& x : logits) {
        if (random() % 3 == 0) x = std::round(x);  // ties
        if (random() % 4 == 0) x = -INFINITY;
      }
      choices_equal_the_hosts<4>(logits, position);
      choices_equal_the_hosts<8>(logits, position);
    }
    choices_equal_the_hosts<4>(std::vector<float>(50, -INFINITY), 3);
    choices_equal_the_hosts<8>(std::vector<float>(300, 1e30F), 3);
  });
}
