#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include <tooldecode/mask/transition_cache.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::mask;

namespace {

constexpr std::uint32_t max_states = std::uint32_t{1} << 22, max_tokens = std::uint32_t{1} << 20;

}  // namespace

TEST_CASE("TransitionCache::find returns the transition that was inserted last, or none") {
  TransitionCache cache;
  CHECK_FALSE(cache.find(0, 0));
  std::map<std::pair<std::uint32_t, TokenId>, std::uint32_t> inserted;
  std::mt19937 random(3);
  // Small numbers recur often, large ones use every bit.
  const auto draw = [&](std::uint32_t end) {
    const std::uint32_t below = random() % 2 == 0 ? 300 : end;
    return random() % 16 == 0 ? end - 1 : static_cast<std::uint32_t>(random() % below);
  };
  for (int i = 0; i < 150'000; ++i) {
    const std::uint32_t state = draw(max_states), next = draw(max_states - 1);
    const auto token = static_cast<TokenId>(draw(max_tokens));
    cache.insert(state, token, next);
    inserted[{state, token}] = next;
    if (cache.find(state, token) != next) FAIL("the newest is lost: " << state << ' ' << token);
  }
  std::size_t kept = 0;
  for (const auto& [from, next] : inserted) {
    const auto found = cache.find(from.first, from.second);
    if (found && *found != next) FAIL(from.first << ' ' << from.second << " leads elsewhere");
    kept += found.has_value();
  }
  CHECK(kept > 10'000);
  CHECK(kept < inserted.size());  // some gave way to others
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t state = draw(max_states);
    const auto token          = static_cast<TokenId>(draw(max_tokens));
    if (inserted.count({state, token}) == 0 && cache.find(state, token)) {
      FAIL("never inserted: " << state << ' ' << token);
    }
  }
}

TEST_CASE("TransitionCache does not store transitions beyond its bounds") {
  TransitionCache cache;
  const auto is_forgotten = [&](std::uint32_t state, TokenId token, std::uint32_t next) {
    cache.insert(state, token, next);
    return !cache.find(state, token);
  };
  CHECK(is_forgotten(max_states, 5, 1));
  CHECK(is_forgotten(~std::uint32_t{0}, 5, 1));
  CHECK(is_forgotten(1, static_cast<TokenId>(max_tokens), 1));
  CHECK(is_forgotten(1, -1, 1));
  CHECK(is_forgotten(1, 5, max_states - 1));
  CHECK(is_forgotten(1, 5, max_states));
  CHECK_FALSE(is_forgotten(1, 5, max_states - 2));
  CHECK_FALSE(is_forgotten(max_states - 1, static_cast<TokenId>(max_tokens - 1), 0));
  CHECK_FALSE(cache.find(1 + max_states, 5));
  CHECK_FALSE(cache.find(0, static_cast<TokenId>(max_tokens + 5)));
  CHECK(cache.find(1, 5) == max_states - 2);
}

TEST_CASE("TransitionCache returns whole transitions while other threads write") {
  TransitionCache cache;
  const auto next_of = [](std::uint32_t state, TokenId token) {
    return (state * 7919 + static_cast<std::uint32_t>(token) * 104729) % (max_states - 1);
  };
  const auto run = [&](unsigned seed, std::size_t& wrong) {
    std::mt19937 random(seed);
    for (int i = 0; i < 100'000; ++i) {
      const auto state = static_cast<std::uint32_t>(random() % 1000);
      const auto token = static_cast<TokenId>(random() % 1000);
      const auto found = cache.find(state, token);
      wrong += found && *found != next_of(state, token);
      cache.insert(state, token, next_of(state, token));
    }
  };
  std::size_t wrong[2] = {0, 0};
  std::thread other(run, 1, std::ref(wrong[0]));
  run(2, wrong[1]);
  other.join();
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
}
