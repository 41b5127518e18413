#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/expectations.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/schema/json_schema.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

const VocabularyIndex& bytes() {
  static const VocabularyIndex cache(test::byte_vocabulary());
  return cache;
}

Constraint person(bool others) {
  return Constraint(bytes(),
                    Grammar::json_schema(R"({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 3}, "age": {"type": "integer"},
        "ok": {"type": "boolean"}, "plate": {"type": "string", "pattern": "^a[0-9]+$"},
        "size": {"enum": ["S", "M"]}, "none": {"const": null},
        "days": {"type": "integer", "minimum": 1, "maximum": 30}}, "additionalProperties": )" +
                                             std::string(others ? "true}" : "false}"),
                                         {.whitespace = others ? 40U : 0U}));
}

// Along random texts, the reported bytes are the allowed ones.
void walk(const Automaton& automaton, Automaton::State from, unsigned seed) {
  std::mt19937 random(seed);
  INFO("seed " << seed);
  for (int text = 0; text < 10; ++text) {
    auto state = from;
    for (int i = 0; i < 60; ++i) {
      ByteSet told;
      bool ends = false;
      for (const auto& one : constraint::ExpectationFinder(automaton).at(state)) {
        CHECK_FALSE(one.words.empty());
        told |= one.first;
        ends = ends || one.kind == constraint::Expectation::Kind::end;
      }
      const ByteSet allowed = automaton.allowed(state);
      CHECK(told == allowed);
      CHECK(ends == automaton.is_accepting(state));
      std::vector<std::uint8_t> next;
      allowed.for_each([&](std::uint8_t byte) { next.push_back(byte); });
      if (next.empty()) break;
      state = *automaton.step(state, next[random() % next.size()]);
    }
  }
}

}  // namespace

TEST_CASE("ExpectationFinder reports exactly the bytes that the automaton allows") {
  const auto no_others = person(false), others = person(true);
  walk(no_others.automaton(), no_others.initial().id, 1);
  walk(others.automaton(), others.initial().id, 2);
  const auto bounded = Constraint(
      bytes(), Grammar::json_schema(R"({"type": "object", "maxProperties": 3, "minProperties": 2,
        "properties": {"a": {"type": "string"}, "ab": {"type": "number"}, "ä": true},
        "patternProperties": {"^x": {"type": "null"}}, "dependentRequired": {"a": ["ab"]},
        "additionalProperties": {"type": "array", "items": {"maxLength": 2}}})"));
  for (unsigned seed = 3; seed < 6; ++seed) walk(bounded.automaton(), bounded.initial().id, seed);
  const ToolCallFSM python{
      bytes(), test::two_tools(), PythonCall{}, {.choice = ToolChoice::required}};
  walk(python.constraint().automaton(), python.initial().id, 6);
  const ToolCallFSM hermes{
      bytes(), test::two_tools(), JsonCall::hermes(), {.choice = ToolChoice::required}};
  walk(hermes.constraint().automaton(), hermes.initial().id, 7);
  const Constraint grammar(bytes(),
                           Grammar::ebnf("root ::= (\"a\" | \"(\" root \")\"){1,3} [^b]?"));
  walk(grammar.automaton(), grammar.initial().id, 8);
}
