#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/grammar/automaton.hpp>

#include <support/catch.hpp>
#include <support/random_grammar.hpp>
#include <support/slow_matcher.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

TEST_CASE("Automaton accepts and allows what the reference matcher does on random grammars") {
  std::size_t texts = 0, accepted = 0;
  for (unsigned seed = 1; seed <= 1500; ++seed) {
    INFO("seed " << seed);
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root     = maker.node(3);
    const Grammar grammar = maker.grammar;
    if (!grammar.satisfiable()[root.index()] || is_left_recursive(grammar)) continue;
    const Automaton automaton(grammar, root, 4);
    for (int walk = 0; walk < 4; ++walk) {
      std::string text;
      Automaton::State state = automaton.initial();
      for (int step = 0; step < 8; ++step) {
        INFO("text " << text);
        ++texts;
        REQUIRE(automaton.is_accepting(state) == slow::matches(grammar, root, text));
        accepted += automaton.is_accepting(state);
        ByteSet expected;
        for (const char c : test::RandomGrammar::alphabet) {
          if (slow::is_prefix(grammar, root, text + c))
            expected.insert(static_cast<std::uint8_t>(c));
        }
        REQUIRE(automaton.allowed(state) == expected);
        REQUIRE((automaton.is_accepting(state) || !expected.empty()));  // no dead end
        if (expected.empty()) break;
        auto skip   = maker.below(static_cast<std::uint32_t>(expected.size()));
        char chosen = 0;
        expected.for_each([&](std::uint8_t byte) {
          if (skip-- == 0) chosen = static_cast<char>(byte);
        });
        const auto byte = static_cast<std::uint8_t>(chosen);
        REQUIRE_FALSE(automaton.step(state, 'z'));
        state = *automaton.step(state, byte);
        text += chosen;
      }
    }
  }
  CHECK(texts > 5000);
  CHECK(accepted > 500);
}

TEST_CASE(
    "Automaton::representative returns a state that allows the same texts up to the horizon") {
  for (const Occurrences bounds : {Occurrences{7, 12}, Occurrences{9}, Occurrences{0, 11}}) {
    Grammar grammar;
    const NodeId item = grammar.sequence(
        {grammar.literal("a"), grammar.lexeme(test::RandomGrammar::quoted(), bounds)});
    const NodeId root           = grammar.repeat(item, bounds, grammar.literal(","));
    const std::uint32_t horizon = 3;
    const Automaton automaton(std::move(grammar), root, horizon);
    const auto texts = [&](Automaton::State from) {
      std::vector<std::pair<std::string, Automaton::State>> all{{"", from}};
      std::vector<std::pair<std::string, bool>> result;
      for (std::size_t i = 0; i < all.size(); ++i) {
        result.emplace_back(all[i].first, automaton.is_accepting(all[i].second));
        if (all[i].first.size() == horizon) continue;
        automaton.allowed(all[i].second).for_each([&](std::uint8_t byte) {
          const auto next = *automaton.step(all[i].second, byte);
          all.emplace_back(all[i].first + static_cast<char>(byte), next);
        });
      }
      return result;
    };
    std::mt19937 random(4);
    Automaton::State state = automaton.initial();
    for (int step = 0; step < 400 && !automaton.allowed(state).empty(); ++step) {
      REQUIRE(texts(automaton.representative(state)) == texts(state));
      auto skip         = random() % static_cast<unsigned>(automaton.allowed(state).size());
      std::uint8_t byte = 0;
      automaton.allowed(state).for_each([&](std::uint8_t b) {
        if (skip-- == 0) byte = b;
      });
      state = *automaton.step(state, byte);
    }
  }
}

TEST_CASE("Automaton::tags returns the marks around a position and an empty language throws") {
  Grammar grammar;
  const NodeId root = grammar.sequence(
      {grammar.literal("a"),
       grammar.tagged(
           7, grammar.sequence({grammar.tagged(9, grammar.literal("bb")), grammar.literal("a")}))});
  const Automaton automaton(std::move(grammar), root);
  auto state = automaton.initial();
  CHECK(automaton.tags(state).empty());
  state = *automaton.step(state, 'a');
  CHECK(automaton.tags(state) == std::vector<std::uint32_t>{9, 7});
  state = *automaton.step(*automaton.step(state, 'b'), 'b');
  CHECK(automaton.tags(state) == std::vector<std::uint32_t>{7});

  Grammar none;
  const NodeId nothing = none.nothing();
  CHECK_THROWS_AS(Automaton(none, nothing), Error);
  Grammar loop;
  const NodeId self = loop.reserve();
  loop.define(self, loop.choice({self, loop.literal("a")}));
  CHECK_THROWS_AS(Automaton(loop, self), Error);
}

TEST_CASE("Automaton reads brackets that nest 100000 deep") {
  Grammar grammar;
  const NodeId value = grammar.reserve();
  grammar.define(
      value, grammar.choice({grammar.literal("a"), grammar.sequence({grammar.literal("["), value,
                                                                     grammar.literal("]")})}));
  const Automaton automaton(std::move(grammar), value);
  auto state = automaton.initial();
  for (int i = 0; i < 100'000; ++i) state = *automaton.step(state, '[');
  state = automaton.representative(*automaton.step(state, 'a'));
  for (int i = 0; i < 100'000; ++i) state = *automaton.step(state, ']');
  CHECK(automaton.is_accepting(state));
}

TEST_CASE("Automaton ends a lexeme without a closing state only after its least number of units") {
  Dfa::Row row;
  row.next['a']  = 0;
  row.accepting  = true;
  row.boundary   = true;
  const auto dfa = std::make_shared<const Dfa>(std::vector{row});
  Grammar grammar;
  const NodeId root = grammar.sequence({grammar.lexeme(dfa, {2, 3}), grammar.literal("b")});
  const Automaton automaton(std::move(grammar), root);
  const auto accepts = [&](std::string_view text) {
    std::optional state = automaton.initial();
    for (const char c : text) {
      if (state) state = automaton.step(*state, static_cast<std::uint8_t>(c));
    }
    return state && automaton.is_accepting(*state);
  };
  CHECK_FALSE(accepts("b"));
  CHECK_FALSE(accepts("ab"));
  CHECK(accepts("aab"));
  CHECK(accepts("aaab"));
  CHECK_FALSE(accepts("aaaab"));
}
