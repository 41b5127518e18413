// What the server shows of an answer: reasoning, the white space around it, how many tokens it took; and which reasoning
// `auto` allows.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <program/answer.hpp>
#include <program/reasoning.hpp>
#include <program/reply.hpp>
#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using formats::ReasoningDelimiters;
using program::AnswerText;

namespace {

constexpr TokenId think = 257, no_think = 258;

Vocabulary think_vocabulary() {
  return test::byte_vocabulary({{"<think>", TokenType::control}, {"</think>", TokenType::control}});
}

std::vector<TokenId> operator+(std::vector<TokenId> tokens, std::string_view text) {
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

std::vector<TokenId> operator+(std::vector<TokenId> tokens, TokenId token) {
  tokens.push_back(token);
  return tokens;
}

struct Shown {
  std::string reasoning, text;
  std::size_t calls = 0;
};

Shown shown(AnswerText answer, const std::vector<TokenId>& tokens) {
  Shown all;
  const auto add = [&](const AnswerText::Events& events) {
    for (const StreamEvent& event : events) {
      if (event.kind == StreamEvent::Kind::reasoning) {
        CHECK_FALSE(event.text.empty());
        all.reasoning += event.text;
      }
      if (event.kind == StreamEvent::Kind::text) all.text += event.text;
      all.calls += event.kind == StreamEvent::Kind::call_begin ? 1 : 0;
    }
  };
  for (const TokenId token : tokens) add(answer.push(token));
  add(answer.finish());
  return all;
}

constexpr program::DroppedSpace all_space{.around_reasoning = true, .before_text = true};

}  // namespace

TEST_CASE("AnswerText: drops the white space around reasoning and before the text behind it") {
  const std::vector<TokenId> block =
      std::vector<TokenId>{think} + "\n Hm. \n" + "\nSo.\n" + no_think;
  for (const ToolSet& tools : {ToolSet(), test::two_tools()}) {
    const ToolCallFSM calls(think_vocabulary(), tools, JsonCall::hermes(),
                            {.reasoning = ReasoningDelimiters()});
    CAPTURE(tools.size());
    const Shown dropped = shown(AnswerText(calls, {}, all_space), block + "\n\nHello \n");
    CHECK(dropped.reasoning == "Hm. \n\nSo.");
    CHECK(dropped.text == "Hello \n");
    const Shown kept = shown(AnswerText(calls, {}), block + "\n\nHello \n");
    CHECK(kept.reasoning == "\n Hm. \n\nSo.\n");
    CHECK(kept.text == "\n\nHello \n");
    const Shown silent = shown(AnswerText(calls, {}, all_space), block + "\n\n");
    CHECK(silent.reasoning == "Hm. \n\nSo.");
    CHECK(silent.text.empty());
    const auto no_thought = std::vector<TokenId>{think} + "\n\n" + no_think;
    CHECK(shown(AnswerText(calls, {}, all_space), no_thought + "\n\nHi").reasoning.empty());
    CHECK(shown(AnswerText(calls, {}, all_space), no_thought + "\n\nHi").text == "Hi");
    const auto empty = std::vector<TokenId>{think} + no_think;
    CHECK(shown(AnswerText(calls, {}, all_space), empty + "\n\nHi").text == "Hi");
    CHECK(shown(AnswerText(calls, {}, all_space), empty + "\n\n").text.empty());
    // Without a block all of it is the answer.
    const auto plain = std::vector<TokenId>() + "    int x;";
    CHECK(shown(AnswerText(calls, {}, all_space), plain).text == "    int x;");
    CHECK(shown(AnswerText(calls, {}, all_space), std::vector<TokenId>() + "\n\n").text == "\n\n");
    // A stop text in the reasoning ends nothing.
    CHECK(shown(AnswerText(calls, {"So."}, all_space), block + "Yes. So. No.").text == "Yes. ");
  }
}

TEST_CASE("AnswerText: shows a value or a call behind reasoning without the white space between") {
  const auto schema = text::parse_json(
      R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})");
  const ToolSet tools = test::two_tools();
  const ToolCall call{.name = tools[0].name, .arguments = {{"city", "Oslo"}}};
  for (const std::uint32_t whitespace : {0U, 2U}) {
    const ToolCallFSM calls(think_vocabulary(), tools, JsonCall::hermes(),
                            {.whitespace  = whitespace,
                             .reasoning   = ReasoningDelimiters{.begin = ""},
                             .text_schema = schema});
    const auto block = std::vector<TokenId>() + "Hm." + no_think;
    for (const std::string_view space : {"", "\n", "\n\n"}) {
      const Shown value =
          shown(AnswerText(calls, {}, {.around_reasoning = true}), block + space + R"({"a": 7})");
      CHECK(value.reasoning == "Hm.");
      CHECK(value.text == R"({"a": 7})");
      CHECK(value.calls == 0);
    }
    const Shown called = shown(AnswerText(calls, {}, {.around_reasoning = true}),
                               block + "\n\n" + calls.write(std::vector{call}));
    CHECK(called.reasoning == "Hm.");
    CHECK(called.text.empty());
    CHECK(called.calls == 1);
  }
}

TEST_CASE("AnswerText: shows what might have begun a stop text before the call behind it") {
  const ToolSet tools = test::two_tools();
  const ToolCall call{.name = tools[0].name, .arguments = {{"city", "Oslo"}}};
  const ToolCallFSM calls(think_vocabulary(), tools, JsonCall::hermes());
  AnswerText answer(calls, {"\nObservation"});
  std::string text;
  bool in_calls  = false;
  const auto add = [&](const AnswerText::Events& events) {
    for (const StreamEvent& event : events) {
      in_calls = in_calls || event.kind == StreamEvent::Kind::call_begin;
      if (event.kind != StreamEvent::Kind::text) continue;
      CHECK_FALSE(in_calls);
      text += event.text;
    }
  };
  const auto tokens = std::vector<TokenId>() + ("I look.\n" + calls.write(std::vector{call}));
  for (const TokenId token : tokens) add(answer.push(token));
  add(answer.finish());
  CHECK(in_calls);
  CHECK(text == "I look.\n");
}

TEST_CASE("read_answer reads calls and reasoning whose delimiters are control tokens") {
  const Vocabulary vocabulary = test::byte_vocabulary({{"<think>", TokenType::control},
                                                       {"</think>", TokenType::control},
                                                       {"<tool_call>", TokenType::control},
                                                       {"</tool_call>", TokenType::control}});
  constexpr TokenId begin = 259, end = 260;
  const ToolSet tools = test::two_tools();
  const std::vector made{ToolCall{.name = tools[0].name, .arguments = {{"city", "Oslo"}}}};
  for (const bool opened : {false, true}) {
    const ToolCallFSM calls(vocabulary, tools, JsonCall::hermes(),
                            {.reasoning = ReasoningDelimiters{.begin = opened ? "" : "<think>"}});
    const std::string written = calls.write(made);
    const std::string inside  = written.substr(11, written.size() - 23);
    REQUIRE("<tool_call>" + inside + "</tool_call>" == written);
    auto tokens = std::vector<TokenId>();
    if (!opened) tokens.push_back(think);
    tokens                       = tokens + "Hm." + no_think + "\n" + begin + inside + end;
    const program::Answer answer = program::read_answer(calls, {.tokens = tokens});
    CHECK(answer.problem.empty());
    CHECK(answer.valid);
    CHECK(answer.calls == made);
  }
}

TEST_CASE(
    "AnswerText::reasoning_tokens counts a block with its delimiters, and messages of analysis") {
  const ToolCallFSM calls(think_vocabulary(), {}, JsonCall::hermes(),
                          {.reasoning = ReasoningDelimiters()});
  const AnswerText answer(calls, {});
  const auto block = std::vector<TokenId>{think} + "Hm.";
  CHECK(answer.reasoning_tokens({}) == 0);
  CHECK(answer.reasoning_tokens(std::vector<TokenId>() + "Hello") == 0);
  CHECK(answer.reasoning_tokens(block) == 4);
  CHECK(answer.reasoning_tokens(block + no_think) == 5);
  CHECK(answer.reasoning_tokens(block + no_think + "\n\nHello") == 5);
  const ToolCallFSM opened(think_vocabulary(), {}, JsonCall::hermes(),
                           {.reasoning = ReasoningDelimiters{.begin = ""}});
  CHECK(AnswerText(opened, {}).reasoning_tokens(std::vector<TokenId>{no_think} + "Hello") == 1);
  const ToolCallFSM messages(think_vocabulary(), {}, HarmonyCall{});
  const std::string last = "<|start|>assistant<|channel|>final<|message|>Hello";
  const auto spoken = std::vector<TokenId>() + ("<|channel|>analysis<|message|>Hm.<|end|>" + last);
  CHECK(AnswerText(messages, {}).reasoning_tokens(spoken) ==
        std::string_view(">Hm.<|end|>").size());
  CHECK(AnswerText(messages, {}).reasoning_tokens(std::vector<TokenId>() + last) == 0);
}

TEST_CASE("reasoning_after: a prompt's last delimiter decides whether a block is open") {
  const ReasoningDelimiters usual, apriel{"Here are my reasoning steps:\n", "[END]"};
  CHECK(program::reasoning_after("<|im_start|>assistant\n", usual) == "block");
  CHECK(program::reasoning_after("<|im_start|>assistant\n<think>\n", usual) == "open");
  CHECK(program::reasoning_after("<think>", usual) == "open");
  CHECK(program::reasoning_after("assistant\n<think>\n\n</think>\n\n", usual) == "no");
  CHECK(program::reasoning_after("<think> is what I say", usual) == "block");
  CHECK(program::reasoning_after("", usual) == "block");
  CHECK(program::reasoning_after("<|assistant|>Here are my reasoning steps:", apriel) == "open");
  CHECK(program::reasoning_after("Here are my reasoning steps:\n\n", apriel) == "open");
  CHECK(program::reasoning_after("anything", {.begin = ""}) == "open");
  CHECK(program::reasoning_after("anything</think>", {.begin = ""}) == "no");
}

TEST_CASE("names_reasoning: a template names a delimiter, without white space at its end") {
  const auto names = [](std::string_view source, const ReasoningDelimiters& delimiters) {
    return program::names_reasoning(
        [source](std::string_view text) { return source.find(text) != std::string_view::npos; },
        delimiters);
  };
  CHECK(names("{{ content.split('</think>')[-1] }}", {}));
  CHECK(names("{{ '<think>\\n' }}", {}));
  CHECK_FALSE(names("{{ content }}", {}));
  CHECK(names("{{ 'Thought:\\n' }}", {"Thought:\n", "[END]"}));
  CHECK_FALSE(names("{{ content }}", {.begin = ""}));
  CHECK_FALSE(names("", {"\n", "\n"}));
}

TEST_CASE("check_reasoning refuses what is not a value of the option") {
  for (const char* known : {"auto", "no", "block", "open"}) {
    CHECK_NOTHROW(program::check_reasoning(known));
  }
  for (const char* unknown : {"", "yes", "Auto", "block "}) {
    CHECK(test::code_of([&] { program::check_reasoning(unknown); }) == Errc::invalid_option);
  }
}
