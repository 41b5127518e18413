#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/grammar_options.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

Errc code_of(const std::function<Grammar()>& make) {
  try {
    (void)make();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return {};
}

bool accepts(const Grammar& grammar, const std::string& text) {
  const grammar::Automaton automaton(grammar);
  const auto state = automaton.advance(automaton.initial(), text);
  return state && automaton.is_accepting(*state);
}

ToolSet one_tool() {
  return ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}}, "required": ["a"]}}])");
}

// Each maker with some limits.
std::vector<std::function<Grammar(const BuildLimits&)>> makers() {
  return {[](const BuildLimits& limits) { return Grammar::regex("[ab]{1,9}", limits); },
          [](const BuildLimits& limits) {
            return Grammar::json_schema(R"({"type": "object"})", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::ebnf("root ::= [a-f]{1,9}", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::lark("start: /[a-f]{1,9}/", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::structural_tag(
                R"({"format": {"type": "regex", "pattern": "[a-f]{1,9}"}})", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::tool_calls(one_tool(), JsonCall::hermes(),
                                       {.choice = ToolChoice::required, .limits = limits});
          }};
}

}  // namespace

TEST_CASE("Grammar's makers charge the limits of their options and can be cancelled") {
  const std::atomic<bool> cancelled = true, running = false;
  for (const auto& make : makers()) {
    CHECK_NOTHROW(make({}).root());
    CHECK_NOTHROW(make({.cancelled = &running}).root());
    CHECK(code_of([&] { return make({.steps = 1}); }) == Errc::limit_exceeded);
    CHECK(code_of([&] { return make({.cancelled = &cancelled}); }) == Errc::cancelled);
  }
}

TEST_CASE("EbnfOptions::root names the rule that whole texts match") {
  const auto text = "root ::= \"a\" other\nother ::= \"b\"";
  CHECK(accepts(Grammar::ebnf(text), "ab"));
  CHECK(accepts(Grammar::ebnf(text, {.root = "other"}), "b"));
  CHECK(code_of([&] { return Grammar::ebnf(text, {.root = "none"}); }) == Errc::malformed_grammar);
}

TEST_CASE("Grammar's makers know the tokens of the vocabulary that their options name") {
  const Vocabulary vocabulary({{"<call>", TokenType::control}, {"a", TokenType::normal}});
  CHECK_NOTHROW(Grammar::ebnf("root ::= <[0]>", {.vocabulary = &vocabulary}));
  CHECK(code_of([] { return Grammar::ebnf("root ::= <[0]>"); }) != Errc{});
  CHECK_NOTHROW(Grammar::lark("start: <call>", {.vocabulary = &vocabulary}));
  CHECK(code_of([] { return Grammar::lark("start: <call>"); }) != Errc{});
  const auto tag = R"({"format": {"type": "token", "token": "<call>"}})";
  CHECK_NOTHROW(Grammar::structural_tag(tag, {.vocabulary = &vocabulary}));
  CHECK(code_of([&] { return Grammar::structural_tag(tag); }) != Errc{});
}

TEST_CASE("Grammar::tool_calls accepts conforming calls and no others") {
  const Grammar calls =
      Grammar::tool_calls(one_tool(), JsonCall::hermes(), {.choice = ToolChoice::required});
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
           "}\n</tool_call>";
  };
  CHECK(accepts(calls, call("f", R"({"a": 1})")));
  CHECK_FALSE(accepts(calls, call("g", R"({"a": 1})")));
  CHECK_FALSE(accepts(calls, call("f", R"({"a": "1"})")));
  CHECK_FALSE(accepts(calls, "text"));
}
