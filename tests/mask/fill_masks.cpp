#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/thread_pool.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/fill_masks.hpp>
#include <tooldecode/mask/token_mask.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

// Every third token is allowed; which third depends on the sum of the tokens before.
struct Thirds {
  struct State {
    std::uint32_t sum                                  = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  std::size_t size;

  std::size_t vocabulary_size() const { return size; }
  State initial() const { return {}; }
  std::optional<State> advance(State state, TokenId token) const {
    const auto t = static_cast<std::uint32_t>(token);
    if (t % 3 != state.sum % 3) return std::nullopt;
    return State{state.sum + t + 1};
  }
  void update_mask(State shown, State state, MaskView words) const {
    if (shown.sum % 3 != state.sum % 3) fill_mask(state, words);
  }
  void fill_mask(State state, MaskView words) const {
    if (words.size() != (size + 31) / 32) throw Error(Errc::shape_mismatch, "", "another row");
    std::fill(words.begin(), words.end(), 0U);
    for (std::size_t t = state.sum % 3; t < size; t += 3) words[t / 32] |= 1U << t % 32;
  }
  bool is_accepting(State) const { return false; }
  bool is_finished(State) const { return false; }
  std::string jump_forward(State) const { return {}; }
};
static_assert(ConstraintPolicy<Thirds>);
using State = Thirds::State;

// One mask by the constraint itself; zeros for no state.
std::vector<std::uint32_t> one_mask(const Thirds& constraint, const std::optional<State>& state) {
  TokenMask mask(constraint.vocabulary_size());
  if (state) constraint.fill_mask(*state, mask.words());
  return {mask.words().begin(), mask.words().end()};
}

template <class States>
std::vector<std::uint32_t> masks_one_by_one(const Thirds& constraint, const States& states) {
  std::vector<std::uint32_t> all;
  for (const auto& state : states) {
    const auto mask = one_mask(constraint, state);
    all.insert(all.end(), mask.begin(), mask.end());
  }
  return all;
}

// States met on random walks.
std::vector<State> some_states(const Thirds& constraint, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<State> states{constraint.initial()};
  while (states.size() < 40) {
    const auto token = static_cast<TokenId>(random() % constraint.vocabulary_size());
    if (const auto next = constraint.advance(states[random() % states.size()], token)) {
      states.push_back(*next);
    }
  }
  return states;
}

template <class Call>
void check_invalid(Call call) {
  try {
    call();
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::invalid_option);
  }
}

}  // namespace

TEST_CASE("fill_masks of a batch writes the mask of each state, on one thread or several") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    const Thirds constraint{60 + seed};
    const auto states   = some_states(constraint, seed);
    const auto expected = masks_one_by_one(constraint, states);

    std::vector<std::uint32_t> words(expected.size(), 0xDEADBEEF);
    fill_masks(constraint, states, words);
    CHECK(words == expected);

    // A tensor of int32 is the same memory.
    std::vector<std::int32_t> tensor(expected.size(), 77);
    fill_masks(constraint, states, tensor);
    CHECK(std::equal(
        tensor.begin(), tensor.end(), expected.begin(), expected.end(),
        [](std::int32_t a, std::uint32_t b) { return static_cast<std::uint32_t>(a) == b; }));

    // Two threads that take the next row in turn.
    std::vector<std::uint32_t> shared(expected.size(), 0xDEADBEEF);
    fill_masks(constraint, states, shared, [](std::size_t count, const auto& task) {
      std::atomic<std::size_t> next{0};
      const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) task(i);
      };
      std::thread other(work);
      work();
      other.join();
    });
    CHECK(shared == expected);

    ThreadPool pool(2);
    std::vector<std::uint32_t> pooled(expected.size(), 0xDEADBEEF);
    fill_masks(constraint, states, pooled, pool);
    CHECK(pooled == expected);
  }
}

TEST_CASE("fill_masks of a draft tree writes the mask of each node's path") {
  std::size_t forbidden = 0, below = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Thirds constraint{60 + seed};
    const auto size  = static_cast<TokenId>(constraint.vocabulary_size());
    const State root = some_states(constraint, seed)[seed % 3];
    std::vector<std::size_t> parents{0};
    std::vector<TokenId> tokens{-1};
    std::vector<std::optional<State>> expected{root};
    while (tokens.size() < 64) {
      const std::size_t parent = random() % tokens.size();
      // Some tokens lie outside the vocabulary, on either side.
      const auto token    = static_cast<TokenId>(random() % (constraint.vocabulary_size() + 9)) - 2;
      const auto above    = expected[parent];
      const bool is_token = token >= 0 && token < size;
      parents.push_back(parent);
      tokens.push_back(token);
      expected.push_back(above && is_token ? constraint.advance(*above, token) : std::nullopt);
      forbidden += above && !expected.back();
      below += !above;
    }
    const auto masks = masks_one_by_one(constraint, expected);
    std::vector<std::uint32_t> words(masks.size(), 0xDEADBEEF);
    const auto states =
        fill_masks(constraint, {.root = root, .parents = parents, .tokens = tokens}, words);
    CHECK(states == expected);
    CHECK(words == masks);
  }
  CHECK(forbidden > 20);
  CHECK(below > 20);
}

TEST_CASE("fill_masks refuses buffers of the wrong size and parents out of order") {
  const Thirds constraint{70};
  const State root        = constraint.initial();
  const std::size_t width = mask_word_count(constraint.vocabulary_size());
  std::vector<std::uint32_t> words(2 * width, 7);
  const std::vector<std::uint32_t> before = words;
  const std::vector<State> three(3, root);
  const std::vector<TokenId> tokens{0, 0};
  const std::vector<std::size_t> good{0, 0}, late{0, 1}, one{0};
  CHECK_THROWS_WITH(fill_masks(constraint, three, words),
                    "words " + std::to_string(words.size()) +
                        ": must be ceil(V / 32) for each mask: 3 x " +
                        std::to_string((constraint.vocabulary_size() + 31) / 32));
  check_invalid([&] { fill_masks(constraint, three, words); });
  check_invalid([&] { fill_masks(constraint, std::vector<State>{}, words); });
  check_invalid([&] { fill_masks(constraint, {root, late, tokens}, words); });
  check_invalid([&] { fill_masks(constraint, {root, one, tokens}, words); });
  check_invalid([&] {
    fill_masks(constraint, {root, good, tokens}, MaskView(words).first(width));
  });
  CHECK(words == before);
  fill_masks(constraint, std::vector<State>{}, MaskView{});
  CHECK(fill_masks(constraint, TreeNodes<State>{}, MaskView{}).empty());
}

TEST_CASE("update_masks passes each row its shown and its new state, on one thread or several") {
  const Thirds constraint{67};
  const auto states = some_states(constraint, 3);
  auto shown        = states;
  std::shuffle(shown.begin(), shown.end(), std::mt19937(4));
  auto words = masks_one_by_one(constraint, shown);
  ThreadPool pool(2);
  update_masks(constraint, shown, states, words, pool);
  CHECK(words == masks_one_by_one(constraint, states));
  update_masks(constraint, states, shown, words);
  CHECK(words == masks_one_by_one(constraint, shown));
  const std::span<const State> fewer = std::span(shown).first(3);
  check_invalid([&] { update_masks(constraint, fewer, states, words); });
  check_invalid([&] {
    update_masks(constraint, shown, states, MaskView(std::span(words).first(words.size() - 1)));
  });
  CHECK(words == masks_one_by_one(constraint, shown));
}
