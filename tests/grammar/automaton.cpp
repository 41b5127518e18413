#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/grammar/automaton.hpp>

#include <support/catch.hpp>
#include <support/slow_matcher.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

const std::string alphabet = "ab,\"";

// Quoted a's and b's, with their characters as counted units.
DfaPointer quoted() {
  std::vector<Dfa::Row> rows(3);
  rows[0].next['"'] = 1;
  rows[1].next['a'] = rows[1].next['b'] = 1;
  rows[1].next['"']                     = 2;
  rows[1].boundary                      = true;
  rows[2].accepting = rows[2].closing = true;
  return std::make_shared<const Dfa>(std::move(rows));
}
// One or more a's: acceptance that may go on.
DfaPointer run() {
  std::vector<Dfa::Row> rows(2);
  rows[0].next['a'] = rows[1].next['a'] = 1;
  rows[1].accepting                     = true;
  return std::make_shared<const Dfa>(std::move(rows));
}

struct Maker {
  std::mt19937 random;
  Grammar grammar;
  std::vector<NodeId> reserved;

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
  std::string text() {
    std::string result;
    for (std::uint32_t i = 1 + below(2); i > 0; --i) result += alphabet[below(3)];
    return result;
  }
  Occurrences bounds() {
    const std::uint32_t min = below(3);
    return {min, below(3) == 0 ? Occurrences::unbounded : min + below(3)};
  }
  NodeId node(int depth) {
    const std::uint32_t kind = depth == 0 ? below(4) : below(11);
    switch (kind) {
      case 0:
      case 1:
        return grammar.literal(text());
      case 2:
        return grammar.lexeme(below(2) ? quoted() : run(), {});
      case 3:
        return below(4) == 0 ? grammar.nothing() : grammar.lexeme(quoted(), bounds());
      case 4:
        return grammar.sequence({node(depth - 1), node(depth - 1)});
      case 5:
        return grammar.choice({node(depth - 1), node(depth - 1)});
      case 6:
        return grammar.repeat(grammar.sequence({grammar.literal(text()), node(depth - 1)}),
                              bounds(), below(2) ? grammar.empty() : grammar.literal(","));
      case 7: {
        std::vector<std::pair<std::string, NodeId>> list;
        for (std::uint32_t i = 0; i < 3; ++i) list.emplace_back(text(), node(depth - 1));
        return grammar.trie(list);
      }
      case 8: {
        KeyedSet set{.members          = {},
                     .others           = {},
                     .separator        = grammar.literal(","),
                     .documented_order = below(2) == 0,
                     .leading          = below(3) == 0 ? below(4) : 0};
        std::vector<std::string> keys{"a", "b", "ab"};
        for (std::uint32_t i = 0; i < 3; ++i) {
          set.members.push_back({{keys[i]}, node(depth - 1), below(3) == 0});
        }
        if (below(3) == 0) set.others.push_back({quoted(), node(depth - 1)});
        if (below(3) == 0)
          set.others.push_back({run(), grammar.sequence({grammar.literal(","), node(depth - 1)})});
        if (below(4) == 0) set.count = bounds();
        if (below(4) == 0) {
          // In the documented order a least number beside dependences is not followed to the end.
          if (set.documented_order) set.count.min = 0;
          set.dependent.emplace_back(below(3), below(3));
          set.dependent.emplace_back(below(3), below(3));
        }
        return grammar.keyed_set(set);
      }
      case 9:
        return grammar.tagged(below(5), node(depth - 1));
      default: {
        if (!reserved.empty()) return grammar.sequence({grammar.literal(text()), reserved[0]});
        const NodeId self = grammar.reserve();
        reserved.push_back(self);
        grammar.define(self, grammar.choice({node(depth - 1), grammar.literal("b")}));
        return self;
      }
    }
  }
};

}  // namespace

TEST_CASE("The automaton agrees with the slow matcher on random grammars") {
  std::size_t texts = 0, accepted = 0;
  for (unsigned seed = 1; seed <= 1500; ++seed) {
    INFO("seed " << seed);
    Maker maker{std::mt19937(seed), {}, {}};
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
        for (const char c : alphabet) {
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

TEST_CASE("A representative allows the same texts up to the horizon") {
  for (const Occurrences bounds : {Occurrences{7, 12}, Occurrences{9}, Occurrences{0, 11}}) {
    Grammar grammar;
    const NodeId item = grammar.sequence({grammar.literal("a"), grammar.lexeme(quoted(), bounds)});
    const NodeId root = grammar.repeat(item, bounds, grammar.literal(","));
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

TEST_CASE("Tags are the marks around a position, and an empty language is an error") {
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

TEST_CASE("Brackets may nest as deep as a model likes") {
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

TEST_CASE("A lexeme without a closing byte ends only after its least number of units") {
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
