#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/draft_state.hpp>
#include <tooldecode/model/eagle_model.hpp>

#include <support/catch.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;
using Floats = std::vector<float>;

namespace {

constexpr std::size_t width = 36;

/// The target's hidden states of a sequence.
struct Sequence {
  Tokens tokens;
  Floats hidden;  // [L, H]

  Sequence(const td::LlamaModel& target, std::size_t length, std::mt19937& random)
      : tokens(length), hidden(length * width) {
    for (auto& token : tokens) token = static_cast<td::TokenId>(random() % 61);
    auto cache = target.make_cache();
    target.forward_hidden(cache, tokens, hidden);
  }

  /// The context where `read` tokens are read, those from `before` on since the last draft, and
  /// `unread` more are emitted.
  td::DraftContext<td::Unconstrained> context(const td::Unconstrained& any, std::size_t before,
                                              std::size_t read, std::size_t unread) const {
    const auto all = std::span(tokens).first(read + unread);
    return {.constraint = any,
            .state      = any.initial(),
            .prompt     = all.first(1),
            .generated  = all.subspan(1),
            .unread     = unread,
            .hidden     = std::span(hidden).subspan(before * width, (read - before) * width)};
  }
};

/// The guess after a sequence, by appending to a cache alone: its own guesses stand in for the
/// states of what is unread.
Floats slow_guess(const td::EagleModel& model, const Sequence& sequence, std::size_t read,
                  std::size_t unread) {
  auto cache = model.make_cache();
  Floats guess(width);
  for (std::size_t i = 0; i + 1 < read + unread; ++i) {
    const Floats last = guess;
    const auto state  = i < read ? std::span(sequence.hidden).subspan(i * width, width)
                                 : std::span<const float>(last);
    model.forward(cache, std::span(sequence.tokens).subspan(i + 1, 1), state, guess);
  }
  return guess;
}

}  // namespace

TEST_CASE("DraftState::follow after any history gives the guess of reading the sequence at once") {
  const auto target = td::test::random_llama(1);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 2)};
  const td::Unconstrained any{61};
  for (unsigned seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const Sequence sequence{target, 70, random};
    td::draft::DraftState<td::EagleModel> state{model};
    std::size_t read = 0;
    while (true) {
      const std::size_t before = read;
      read += 1 + random() % 9;
      const std::size_t unread = 1 + random() % 6;
      if (read + unread > 70) break;
      const auto context = sequence.context(any, before, read, unread);
      const Floats guess = state.follow(model, context);
      REQUIRE(guess == slow_guess(model, sequence, read, unread));
      REQUIRE(state.room() == 64 - (unread - 1));
      REQUIRE(state.above() == (std::uint64_t{1} << (unread - 1)) - 1);

      td::draft::DraftState<td::EagleModel> fresh{model};
      const auto all = sequence.context(any, 0, read, unread);
      REQUIRE(fresh.follow(model, all) == guess);
      // Two children of the root, then one below the first: the same nodes, whatever came before.
      const auto run_three = [&](td::draft::DraftState<td::EagleModel>& at) {
        Floats from = guess, children(2 * width), grandchild(width);
        from.insert(from.end(), guess.begin(), guess.end());
        const auto masks = at.run(model, Tokens{3, 5}, std::vector(2, at.above()), from, children);
        const auto below = at.run(model, Tokens{7}, std::span(masks).first(1),
                                  std::span(children).first(width), grandchild);
        REQUIRE(masks[0] == (at.above() | std::uint64_t{1} << (unread - 1)));
        REQUIRE(masks[1] == (at.above() | std::uint64_t{1} << unread));
        REQUIRE(below == std::vector{masks[0] | std::uint64_t{1} << (unread + 1)});
        REQUIRE(at.room() == 64 - (unread - 1) - 3);
        children.insert(children.end(), grandchild.begin(), grandchild.end());
        return children;
      };
      const Floats nodes = run_three(state);
      REQUIRE(nodes == run_three(fresh));
      // And a node's guess is that of its path, appended.
      Sequence path = sequence;
      path.tokens.resize(read + unread);
      path.tokens.insert(path.tokens.end(), {3, 7});
      REQUIRE(Floats(nodes.end() - width, nodes.end()) ==
              slow_guess(model, path, read, unread + 2));
    }
  }
}

TEST_CASE("DraftState::follow of wider hidden states reads the part that its model needs") {
  const auto target = td::test::random_llama(6);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 7)};
  const td::Unconstrained any{61};
  std::mt19937 random{8};
  const Sequence sequence{target, 30, random};
  Floats wide;
  for (std::size_t i = 0; i < 30; ++i) {
    const Floats more = td::test::random_numbers(2 * width, 1, random);
    const auto state  = std::span(sequence.hidden).subspan(i * width, width);
    wide.insert(wide.end(), more.begin(), more.end());
    wide.insert(wide.end(), state.begin(), state.end());
  }
  td::draft::DraftState<td::EagleModel> state{model}, told_more{model};
  for (const auto& [before, read] : {std::pair(0U, 7U), {7U, 8U}, {8U, 20U}}) {
    auto context       = sequence.context(any, before, read, 3);
    const Floats guess = state.follow(model, context);
    context.hidden     = std::span(wide).subspan(before * 3 * width, (read - before) * 3 * width);
    CHECK(told_more.follow(model, context) == guess);
  }
  const td::Eagle3Model wider{target, td::test::random_eagle3_weights(target.config(), 9)};
  td::draft::DraftState<td::Eagle3Model> narrow{wider};
  CHECK_THROWS_WITH(narrow.follow(wider, sequence.context(any, 0, 7, 1)),
                    "hidden: the target's states have 36 numbers: must have the 144 that the draft "
                    "model reads, as a FeatureModel's do for EAGLE-3");
}

TEST_CASE("DraftState::run runs up to 64 nodes, those above the root included") {
  const auto target = td::test::random_llama(3);
  const td::EagleModel model{target, td::test::random_eagle_weights(target.config(), 4)};
  const td::Unconstrained any{61};
  std::mt19937 random{5};
  const Sequence sequence{target, 30, random};
  td::draft::DraftState<td::EagleModel> state{model};
  const Floats guess = state.follow(model, sequence.context(any, 0, 3, 17));
  CHECK(state.room() == 48);
  CHECK(guess == slow_guess(model, sequence, 3, 17));
  Floats out(width);
  std::vector<std::uint64_t> above{state.above()};
  for (std::size_t i = 0; i < 48; ++i) above = state.run(model, Tokens{1}, above, guess, out);
  CHECK(state.room() == 0);
  CHECK(above.front() == ~std::uint64_t{0});
  static_cast<void>(state.follow(model, sequence.context(any, 3, 4, 1)));
  CHECK(state.room() == 64);
  CHECK(state.above() == 0);
}
