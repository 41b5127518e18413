#include <memory>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/nonempty.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using tooldecode::grammar::Automaton;
using tooldecode::grammar::NonemptyTexts;

namespace {

using test::accepts;

NodeId pattern(Grammar& grammar, const char* text) {
  return grammar.lexeme(
      std::make_shared<const text::Dfa>(text::utf8_lexeme(text::compile_whole_pattern(text))));
}

}  // namespace

TEST_CASE("NonemptyTexts accepts what a node accepts except the empty text") {
  Grammar grammar;
  const NodeId a = grammar.literal("a"), b = pattern(grammar, "b*"), c = pattern(grammar, "(cé)*");
  const NodeId list = grammar.repeat(a, {0, 2}, b);
  const NodeId loop = grammar.reserve();
  grammar.define(loop, grammar.optional(grammar.sequence({a, loop, grammar.literal("d")})));
  const std::vector<NodeId> nodes{
      a,
      b,
      c,
      list,
      loop,
      grammar.empty(),
      grammar.nothing(),
      grammar.optional(a),
      grammar.sequence({b, c}),
      grammar.sequence({b, a, c}),
      grammar.sequence({grammar.optional(a), list, loop, c}),
      grammar.tagged(7, grammar.choice({c, grammar.empty()})),
      grammar.trie({{"", a}, {"a", grammar.empty()}, {"", b}}),
  };
  NonemptyTexts nonempty(grammar);
  std::vector<NodeId> made;
  for (const NodeId node : nodes) made.push_back(nonempty(node));
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; i < 400; ++i) {
    for (const char* letter : {"a", "b", "cé", "d"}) texts.push_back(texts[i] + letter);
  }
  const auto live      = grammar.satisfiable();
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    INFO("node " << i);
    if (!live[nodes[i].index()]) continue;
    const Automaton all(grammar, nodes[i]);
    CHECK(nonempty.has_empty(nodes[i]) == accepts(all, ""));
    if (!nonempty.has_empty(nodes[i])) CHECK(made[i] == nodes[i]);
    if (!live[made[i].index()]) {
      for (std::size_t k = 1; k < texts.size(); ++k) REQUIRE_FALSE(accepts(all, texts[k]));
      continue;
    }
    const Automaton others(grammar, made[i]);
    CHECK_FALSE(accepts(others, ""));
    for (std::size_t k = 1; k < texts.size(); ++k) {
      if (accepts(all, texts[k]) != accepts(others, texts[k])) FAIL(texts[k]);
      accepted += accepts(all, texts[k]);
    }
  }
  CHECK(accepted > 100);
}

TEST_CASE("NonemptyTexts keeps the bounds of a lexeme's units") {
  Grammar grammar;
  const NodeId some = grammar.lexeme(
      std::make_shared<const text::Dfa>(text::utf8_lexeme(text::compile_whole_pattern("[aé]*"))),
      {0, 2});
  const NodeId other = NonemptyTexts(grammar)(some);
  const Automaton machine(grammar, other);
  CHECK_FALSE(accepts(machine, ""));
  CHECK(accepts(machine, "éa"));
  CHECK_FALSE(accepts(machine, "éaa"));
}

TEST_CASE("NonemptyTexts of an item that may be empty can be repeated") {
  Grammar grammar;
  const NodeId item = grammar.optional(grammar.literal("a"));
  const Automaton machine(grammar,
                          grammar.repeat(NonemptyTexts(grammar)(item), {0, 3}, grammar.empty()));
  for (const char* text : {"", "a", "aaa"}) CHECK(accepts(machine, text));
  CHECK_FALSE(accepts(machine, "aaaa"));
}

TEST_CASE("NonemptyTexts throws for a keyed set whose members may all be missing") {
  Grammar grammar;
  const NodeId set = grammar.keyed_set(
      {.members = {{{"a"}, grammar.empty(), false}}, .others = {}, .separator = grammar.empty()});
  NonemptyTexts nonempty(grammar);
  CHECK(nonempty.has_empty(set));
  CHECK_THROWS_AS(nonempty(set), Error);
}
