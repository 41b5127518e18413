#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>

#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;

namespace {

// The marks at the positions after a text, without the marks of tools.
template <class F>
std::vector<std::uint32_t> marks_after(const F& format, std::string_view text) {
  CallGrammar built =
      build_call_grammar(format, test::two_tools(), {.reasoning = formats::ReasoningDelimiters{}});
  const grammar::Automaton machine(built.grammar);
  const auto state = machine.advance(machine.initial(), text);
  REQUIRE(state);
  std::vector<std::uint32_t> marks;
  for (const auto& position : machine.positions(*state)) {
    for (const std::uint32_t mark : machine.tags_at(position)) {
      if (mark >= argument_tag) marks.push_back(mark);
    }
  }
  std::sort(marks.begin(), marks.end());
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  return marks;
}

}  // namespace

TEST_CASE(
    "build_call_grammar marks states of text, reasoning, calls and arguments with their tags") {
  namespace mark = formats::mark;
  using Marks    = std::vector<std::uint32_t>;
  CHECK(marks_after(JsonCall::hermes(), "Hm") == Marks{mark::text});
  CHECK(marks_after(JsonCall::hermes(), "<think>Hm") == Marks{mark::reasoning});
  CHECK(marks_after(JsonCall::hermes(), "<tool_call>\n{") == Marks{mark::calls});
  CHECK(marks_after(JsonCall::hermes(),
                    "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\"") ==
        Marks{mark::arguments, mark::calls});
  CHECK(marks_after(XmlCall::glm(), "<tool_call>get\n<arg_key>days</arg_key>\n<arg_value>1") ==
        Marks{argument_tag + 1, mark::argument, mark::calls});
}
