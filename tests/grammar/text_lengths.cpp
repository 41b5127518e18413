#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/grammar/text_lengths.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>
#include <support/random_grammar.hpp>

using namespace tooldecode;
using grammar::Automaton;
using grammar::TextLengths;

namespace {

// TextLengths::rest of a state: the least of its positions.
std::uint32_t rest_of(const Automaton& automaton, Automaton::State state) {
  Automaton::Cursor walk(automaton);
  std::uint32_t least = TextLengths::none;
  for (const auto& frame : automaton.positions(state)) {
    least = std::min(least, walk.lengths().rest(frame));
  }
  return least;
}

// Bytes to the nearest accepting state, by breadth-first search.
std::uint32_t slow_rest(const Automaton& automaton, Automaton::State from, std::uint32_t most) {
  std::vector<Automaton::State> layer{from};
  std::unordered_map<Automaton::State, bool> known{{from, true}};
  for (std::uint32_t depth = 0; depth <= most; ++depth) {
    std::vector<Automaton::State> next;
    for (const Automaton::State state : layer) {
      if (automaton.is_accepting(state)) return depth;
      automaton.allowed(state).for_each([&](std::uint8_t byte) {
        const Automaton::State after = *automaton.step(state, byte);
        if (known.emplace(after, true).second) next.push_back(after);
      });
    }
    layer = std::move(next);
  }
  return most + 1;
}

}  // namespace

TEST_CASE("TextLengths bounds the shortest rest of random grammars and usually equals it") {
  std::size_t states = 0, exact = 0, bounded = 0;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    INFO("seed " << seed);
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root = maker.node(3);
    if (!maker.grammar.satisfiable()[root.index()] || grammar::is_left_recursive(maker.grammar)) {
      continue;
    }
    Automaton automaton(8);
    const auto compiled = automaton.compile(maker.grammar, root);
    const auto worst    = [&] {
      Automaton::Cursor walk(automaton);
      return walk.lengths().worst(compiled);
    }();
    for (int round = 0; round < 3; ++round) {
      auto state = automaton.begin(compiled);
      for (int step = 0; step < 8; ++step) {
        const std::uint32_t expected = slow_rest(automaton, state, 24);
        ++states;
        exact += rest_of(automaton, state) == expected;
        if (worst.bytes < TextLengths::none && worst.nested == 0) {
          ++bounded;
          REQUIRE(expected <= worst.bytes);
        }
        const auto allowed = automaton.allowed(state);
        if (allowed.empty()) break;
        auto skip           = maker.below(static_cast<std::uint32_t>(allowed.size()));
        std::uint8_t chosen = 0;
        allowed.for_each([&](std::uint8_t byte) {
          if (skip-- == 0) chosen = byte;
        });
        state = *automaton.step(state, chosen);
      }
    }
  }
  INFO(states << " states, " << exact << " exact, " << bounded << " bounded");
  CHECK(bounded > 4000);
  CHECK(exact > states * 95 / 100);
}

TEST_CASE("TextLengths of nested values grows with the number of open brackets") {
  Grammar grammar;
  const NodeId value = grammar.reserve();
  const NodeId text  = grammar.lexeme(text::any_string(text::ValueSyntax::json, '"'), {2, 5});
  const NodeId list =
      grammar.sequence({grammar.literal("["), grammar.repeat(value, {1, 9}, grammar.literal(", ")),
                        grammar.literal("]")});
  grammar.define(value, grammar.choice({text, list}));
  Automaton automaton(8);
  const auto root = automaton.compile(grammar, value);
  const auto rest = [&](std::string_view before) {
    return rest_of(automaton, *automaton.advance(automaton.begin(root), before));
  };
  CHECK(rest_of(automaton, automaton.begin(root)) == 4);
  CHECK(rest("[") == 5);
  CHECK(rest("[[") == 6);
  CHECK(rest("[[\"a") == 4);
  CHECK(rest("[[\"abc") == 3);
  CHECK(rest("[[\"abc\"") == 2);
  CHECK(rest("[[\"abc\",") == 7);
  CHECK(rest(std::string(5000, '[')) == 5004);
  Automaton::Cursor walk(automaton);
  CHECK(walk.lengths().worst(root).nested > 0);
}
