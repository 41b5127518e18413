#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
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

TEST_CASE("Automaton leaves 50000 frames whose rest may be empty in one byte") {
  constexpr std::size_t tails = 500, levels = 100;
  Grammar grammar;
  const NodeId root = grammar.reserve();
  NodeId inner      = root;  // root tail499? ... tail0?
  const auto tail   = [](std::size_t i) { return std::string(1, static_cast<char>('b' + i % 20)); };
  for (std::size_t i = tails; i-- > 0;) {
    inner = grammar.sequence({inner, grammar.optional(grammar.literal(tail(i)))});
  }
  grammar.define(root, grammar.choice({grammar.sequence({grammar.literal("a"), inner}),
                                       grammar.literal("a")}));
  const Automaton automaton(std::move(grammar), root);
  auto state = automaton.initial();
  for (std::size_t i = 0; i < levels; ++i) state = *automaton.step(state, 'a');
  CHECK(automaton.is_accepting(state));
  CHECK(automaton.allowed(state).size() == 21);  // every kind of tail, and another a
  std::string all;
  for (std::size_t level = 1; level < levels; ++level) {
    for (std::size_t i = tails; i-- > 0;) all += tail(i);
  }
  std::mt19937 random{5};
  for (int text = 0; text < 3; ++text) {
    std::optional<Automaton::State> at = state;
    std::size_t place                  = 0;  // of the first tail that may follow
    for (int step = 0; step < 12 && at; ++step) {
      const char c = static_cast<char>('b' + random() % 21);  // v is no tail
      place        = all.find(c, place);
      at           = automaton.step(*at, static_cast<std::uint8_t>(c));
      REQUIRE(at.has_value() == (place != std::string::npos));
      if (at) REQUIRE(automaton.is_accepting(*at));
      ++place;
    }
  }
}

TEST_CASE("Automaton charges a budget while it enters a grammar and joins stacks") {
  Grammar doubling;
  NodeId all = doubling.literal("b");
  for (int i = 0; i < 40; ++i) {
    all = doubling.choice({doubling.sequence({all, doubling.literal("x")}),
                           doubling.sequence({all, doubling.literal("y")})});
  }
  const auto code_of = [](const auto& work) -> std::optional<Errc> {
    try {
      work();
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  CHECK(code_of([&] {
          const BuildBudget budget({.steps = 1'000'000});
          Automaton(doubling, all);
        }) == Errc::limit_exceeded);
  Grammar ambiguous;
  const NodeId s = ambiguous.reserve();
  std::vector<NodeId> ways{ambiguous.empty()};
  for (std::size_t k = 1; k < 8; ++k) {
    std::vector<NodeId> parts{ambiguous.literal("a")};
    parts.insert(parts.end(), k, s);
    ways.push_back(ambiguous.sequence(parts));
  }
  ambiguous.define(s, ambiguous.choice(ways));
  const Automaton automaton(ambiguous, s);
  const std::string text(40, 'a');
  CHECK(code_of([&] {
          const BuildBudget budget({.steps = 200'000});
          static_cast<void>(automaton.advance(automaton.initial(), text));
        }) == Errc::limit_exceeded);
  const auto end = automaton.advance(automaton.initial(), text);  // an error leaves it usable
  REQUIRE(end);
  CHECK(automaton.is_accepting(*end));
}

TEST_CASE("Automaton::tags looks for marks once in each bundle of stacks") {
  Grammar grammar;
  const NodeId s = grammar.reserve();
  std::vector<NodeId> ways{grammar.literal("a")};
  for (std::size_t k = 1; k < 8; ++k) {
    std::vector<NodeId> parts{grammar.literal("a")};
    parts.insert(parts.end(), k, s);
    ways.push_back(grammar.sequence(parts));
  }
  grammar.define(s, grammar.choice(ways));
  const NodeId marked = grammar.tagged(7, s);
  for (const NodeId root : {s, marked}) {
    const Automaton automaton(grammar, root);
    const auto state = automaton.advance(automaton.initial(), std::string(60, 'a'));
    REQUIRE(state);
    CHECK(automaton.tags(*state).size() == (root == marked ? 1U : 0U));
  }
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
