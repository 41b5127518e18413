#include <string>

#include <tooldecode/formats/keyed_elements.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("KeyedElements accept members of a set in every spelling of their delimiters") {
  Grammar grammar;
  KeyedSet set{.members = {}, .others = {}, .separator = grammar.empty()};
  formats::KeyedElements elements(set, "<k>", "=");
  elements.add("a", grammar.literal("1;"), true);
  elements.add("b", grammar.literal("2;"), false);
  elements.add_others(grammar.literal("3;"));
  CHECK(
      set.members[0].spellings ==
      std::vector<std::string>{"<k>a=", std::string{control_open} + "<k>" + control_close + "a="});
  CHECK(set.others.size() == 2);
  const grammar::Automaton machine(grammar, grammar.keyed_set(set));
  const auto accepts = [&](const std::string& text) {
    const auto state = machine.advance(machine.initial(), text);
    return state && machine.is_accepting(*state);
  };
  const std::string control = std::string{control_open} + "<k>" + control_close;
  CHECK(accepts("<k>a=1;"));
  CHECK(accepts(control + "a=1;<k>b=2;"));
  CHECK(accepts("<k>b=2;" + control + "a=1;<k>ab=3;<k>c=3;" + control + "c=3;"));
  CHECK_FALSE(accepts("<k>b=2;"));
  CHECK_FALSE(accepts("<k>a=3;"));
  CHECK_FALSE(accepts("<k>a=1;<k>a=1;"));
  CHECK_FALSE(accepts("<k>a=1;<k>1=3;"));
}

TEST_CASE("KeyedElements::add_others accepts keys that are identifiers and match an automaton") {
  Grammar grammar;
  KeyedSet set{.members = {}, .others = {}, .separator = grammar.empty()};
  formats::KeyedElements elements(set, "<k>", "=>");
  elements.add_others(grammar.literal("1;"), tooldecode::text::compile_pattern("^a|c$"));
  elements.add_others(grammar.literal("2;"), tooldecode::text::compile_pattern("^ b$"));
  CHECK(set.others.size() == 2);  // no identifier has a space
  const grammar::Automaton machine(grammar, grammar.keyed_set(set));
  const auto accepts = [&](const std::string& text) {
    const auto state = machine.advance(machine.initial(), text);
    return state && machine.is_accepting(*state);
  };
  CHECK(accepts("<k>a=>1;<k>bc=>1;<k>a_2=>1;"));
  for (const char* text : {"<k>b=>1;", "<k>=>1;", "<k>a=1;", "<k>a =>1;", "<k> b=>2;", "a=>1;"}) {
    CAPTURE(text);
    CHECK_FALSE(accepts(text));
  }
}
