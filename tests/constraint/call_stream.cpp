#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using Kind = StreamEvent::Kind;

namespace {

/// The contents of several events, joined.
struct Joined {
  std::string text, reasoning;
  std::vector<ToolCall> calls;
  std::vector<std::string> arguments;
  std::size_t ended = 0;  // calls
  bool whole        = false;
};

void join(const std::vector<StreamEvent>& events, Joined& all) {
  for (const StreamEvent& event : events) {
    CHECK_FALSE(all.whole);
    switch (event.kind) {
      case Kind::text:
        all.text += event.text;
        break;
      case Kind::reasoning:
        all.reasoning += event.text;
        break;
      case Kind::call_begin:
        CHECK(event.call == all.calls.size());
        CHECK(all.ended == all.calls.size());
        all.calls.push_back({event.text});
        all.arguments.emplace_back();
        break;
      case Kind::arguments:
        REQUIRE(event.call + 1 == all.calls.size());
        CHECK(all.ended == event.call);
        CHECK_FALSE(event.text.empty());
        all.arguments.back() += event.text;
        break;
      case Kind::call_end:
        REQUIRE(event.call + 1 == all.calls.size());
        all.calls.back().arguments = text::parse_json(all.arguments.back());
        ++all.ended;
        break;
      case Kind::answer_end:
        CHECK(event.call == all.ended);
        all.whole = true;
        break;
    }
  }
}

// A text in pieces that end at some places.
Joined stream(const ToolCallFSM& calls, std::string_view text,
              const std::vector<std::size_t>& ends = {}) {
  CallStream stream(calls);
  Joined all;
  std::size_t at = 0;
  for (const std::size_t end : ends) {
    join(stream.push(text.substr(at, end - at)), all);
    at = end;
  }
  join(stream.push(text.substr(at)), all);
  join(stream.finish(), all);
  return all;
}

std::vector<std::size_t> single_bytes(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < text.size(); ++i) ends.push_back(i);
  return ends;
}

const ToolSet& documents() {
  return test::two_tools();
}

const std::vector<ToolCall>& two_calls() {
  static const std::vector<ToolCall> calls{{"get", {{"city", "Åre \"x\" <y>"}, {"days", 2}}},
                                           {"get_time"}};
  return calls;
}

}  // namespace

TEST_CASE(
    "CallStream yields in every format the calls that parse returns, wherever the text is cut") {
  const VocabularyIndex index(test::byte_vocabulary());
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    for (const std::uint32_t whitespace : {0u, 3u}) {
      CAPTURE(whitespace);
      const ToolCallFSM calls(index, documents(), format.format, {.whitespace = whitespace});
      for (std::size_t first = 0; first < 2; ++first) {
        for (std::size_t last = first + 1; last <= 2; ++last) {
          std::vector<ToolCall> some(two_calls().begin() + static_cast<std::ptrdiff_t>(first),
                                     two_calls().begin() + static_cast<std::ptrdiff_t>(last));
          std::string text;
          try {
            text = calls.write(some);
          } catch (const Error&) {
            continue;  // one call an answer
          }
          CAPTURE(text);
          REQUIRE_FALSE(calls.find_refusal(text));
          const auto parsed = calls.parse(text);
          REQUIRE(parsed == some);
          const Joined whole = stream(calls, text);
          CHECK(whole.calls == parsed);
          CHECK(whole.ended == parsed.size());
          CHECK(whole.text.empty());
          CHECK(whole.whole);
          for (std::size_t i = 1; i < text.size(); i += test::is_sanitized ? 5 : 1) {
            const Joined cut = stream(calls, text, {i});
            if (cut.arguments != whole.arguments || cut.calls != parsed) FAIL("cut at " << i);
          }
          CHECK(stream(calls, text, single_bytes(text)).arguments == whole.arguments);
        }
      }
    }
  }
}

TEST_CASE(
    "CallStream emits text and reasoning without delimiters and holds back what may begin one") {
  const JsonCall format = JsonCall::hermes();
  const ToolCallFSM calls{test::byte_vocabulary(), documents(), format,
                          ChoiceOptions{.reasoning = formats::ReasoningDelimiters{}}};
  const std::string call = "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>";
  const std::string text = "<think>\nIs <tool_call> </thin\n</think>\n\nA <tool_ca moment. ";
  for (const auto& ends : {std::vector<std::size_t>{}, single_bytes(text + call)}) {
    const Joined all = stream(calls, text + call, ends);
    CHECK(all.reasoning == "\nIs <tool_call> </thin\n");
    CHECK(all.text == "\n\nA <tool_ca moment. ");
    CHECK(all.calls == std::vector<ToolCall>{{"get_time"}});
    CHECK(all.whole);
  }
  CHECK(stream(calls, "  <think").text == "  <think");
  CHECK(stream(calls, "no block").text == "no block");

  CallStream one(calls);
  CHECK(one.push("A <") == std::vector<StreamEvent>{{Kind::text, 0, "A "}});
  CHECK(one.push("tool").empty());
  CHECK(one.push("<") == std::vector<StreamEvent>{{Kind::text, 0, "<tool"}});
  CHECK(one.push("tool_call>\n{\"name\": \"get").empty());
  CHECK(one.push("\"") == std::vector<StreamEvent>{{Kind::call_begin, 0, "get"}});
  CHECK(one.push(", \"arguments\": {\"city").back() == StreamEvent{Kind::arguments, 0, "{\"city"});
  CHECK(one.push("\": \"\xC3").back() == StreamEvent{Kind::arguments, 0, "\": \""});
  CHECK(one.push("\x85re\"").back() == StreamEvent{Kind::arguments, 0, "Åre\""});
  const std::vector<StreamEvent> last{{Kind::arguments, 0, "}"}, {Kind::call_end, 0, ""}};
  CHECK(one.push("}}") == last);
  CHECK(one.push("\n</tool_call>").empty());
  CHECK(one.finish() == std::vector<StreamEvent>{{Kind::answer_end, 1, ""}});
}

TEST_CASE(
    "CallStream over qwen-2.5 reads an object that names a tool as a call, which must conform") {
  const VocabularyIndex index(test::byte_vocabulary());
  const NamedFormat& format = format_named("qwen-2.5");
  const ToolCallFSM calls(index, documents(), format.format);
  const std::string object =
      "{\n  \"name\": \"get\",\n  \"arguments\": {\n    \"city\": \"Rome\",\n    \"days\": 2\n  }\n}";
  const std::vector<ToolCall> one{{"get", {{"city", "Rome"}, {"days", 2}}}};
  for (const std::string& text : {"Here:\n```json\n" + object + "\n```", object}) {
    CAPTURE(text);
    REQUIRE_FALSE(calls.find_refusal(text));
    for (const auto& ends : {std::vector<std::size_t>{}, single_bytes(text)}) {
      const Joined all = stream(calls, text, ends);
      CHECK(all.calls == one);
      CHECK(all.text == (text == object ? "" : "Here:\n"));
      CHECK(all.whole);
    }
    const auto state = calls.advance_bytes(calls.initial(), text.substr(0, text.find("Rome")));
    REQUIRE(state);
    CHECK(calls.mode(*state) == ToolCallFSM::Mode::tool);
    CHECK(calls.find_tool(*state) == 0);
    // What does not conform is refused, in the text as well.
    const std::size_t days = text.find("2\n");
    CHECK(calls.find_refusal(std::string(text).replace(days, 1, "\"two\""))->at == days);
    CHECK(calls.find_refusal(text + " So it is.")->at == text.size() + 1);
    // Hermes takes the same answer as text; with another tool choice it is refused.
    CHECK(stream(ToolCallFSM(index, documents(), format_named("hermes").format), text).text ==
          text);
    for (const ToolChoice choice : {ToolChoice::required, ToolChoice::none}) {
      CHECK(ToolCallFSM(index, documents(), format.format, {.choice = choice}).find_refusal(text));
    }
    CHECK_FALSE(ToolCallFSM(index, ToolSet(), format.format).find_refusal(text));
    const ToolCallFSM single(index, documents(), format.format, {.parallel = false});
    const std::string again = text + '\n' + (text == object ? text : text.substr(text.find('`')));
    CHECK(single.find_refusal(again));
    CHECK(stream(calls, again).calls.size() == 2);
  }
  const std::vector<std::string> texts{"```json\n{\"name\": \"Ann\"}\n```",
                                       "{\n  \"name\": \"getter\"}",
                                       "So: " + object,
                                       "```python\nget()\n```",
                                       "{",
                                       "```json\n{\"name\": \"get"};
  for (const std::string& text : texts) {
    CAPTURE(text);
    REQUIRE_FALSE(calls.find_refusal(text));
    CHECK(stream(calls, text, single_bytes(text)).text == text);
    CHECK(calls.parse(text).empty());
  }
  // The fence is written as `get` is, and `get_time` has another name.
  CHECK(stream(calls, R"({"name":"get_time","arguments":{}})").calls ==
        std::vector<ToolCall>{{"get_time"}});
  // A value of a schema may begin with a brace.
  const ToolCallFSM value(index, documents(), format.format,
                          {.text_schema = text::parse_json(R"({"type": "object"})")});
  CHECK_FALSE(value.find_refusal("{}"));
}

TEST_CASE(
    "CallStream over Python calls emits keys and strings as they come, numbers once complete") {
  const ToolCallFSM python{test::byte_vocabulary(), documents(), PythonCall{}};
  CallStream stream(python);
  const auto arguments = [](const std::string& text) {
    return std::vector<StreamEvent>{{Kind::arguments, 0, text}};
  };
  CHECK(stream.push("[get(") == std::vector<StreamEvent>{{Kind::call_begin, 0, "get"}});
  CHECK(stream.push("days=").empty());
  CHECK(stream.push("1") == arguments("{\"days\": "));
  CHECK(stream.push("2, city='O") == arguments("12, \"city\": \"O"));
  CHECK(stream.push("s\\").size() == 1);
  CHECK(stream.push("'l") == arguments("'l"));
  CHECK_THROWS_AS(stream.push("o', nothing"), Error);  // and changes nothing
  CHECK(stream.push("o'") == arguments("o\""));
  const std::vector<StreamEvent> end{{Kind::arguments, 0, "}"}, {Kind::call_end, 0, ""}};
  CHECK(stream.push(")") == end);
  const std::vector<StreamEvent> second{
      {Kind::call_begin, 1, "get_time"}, {Kind::arguments, 1, "{}"}, {Kind::call_end, 1, ""}};
  CHECK(stream.push(", get_time()]") == second);
}

TEST_CASE("CallStream over every format emits the first argument in the step of its first byte") {
  for (const NamedFormat& format : named_formats()) {
    INFO(format.name);
    const ToolCallFSM calls{test::byte_vocabulary(), documents(), format.format};
    const std::string text  = calls.write(std::vector<ToolCall>{
        {"get", text::parse_json(R"({"days": 12, "city": "Oslo <b> \"x\""})")}});
    const std::size_t first = text.find("12");
    REQUIRE(first != std::string::npos);
    CallStream stream(calls);
    std::string given;
    std::size_t string_bytes = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      for (const StreamEvent& event : stream.push(text.substr(i, 1))) {
        if (event.kind == Kind::arguments) given += event.text;
      }
      if (i == first) CHECK(given.find("\"days\":") != std::string::npos);
      if (given.ends_with("Oslo")) ++string_bytes;
    }
    CHECK(string_bytes > 0);  // the string is given before it is complete
  }
}

TEST_CASE("CallStream over a truncated answer emits the text and arguments written so far") {
  const ToolCallFSM hermes{test::byte_vocabulary(), documents(), JsonCall::hermes()};
  const std::string text = "See:<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Oslo";
  Joined all             = stream(hermes, text);
  CHECK(all.text == "See:");
  CHECK(all.calls.size() == 1);
  CHECK(all.arguments == std::vector<std::string>{"{\"city\": \"Oslo"});
  CHECK(all.ended == 0);
  CHECK(stream(hermes, "See:<tool").text == "See:<tool");
}

TEST_CASE("CallStream over Harmony separates text from reasoning by a message's channel") {
  const ToolCallFSM calls{test::byte_vocabulary(), documents(), HarmonyCall{}};
  const std::string text =
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>"
      "Wait < a bit.<|end|><|start|>assistant<|channel|>commentary to=functions.get_time "
      "<|constrain|>json<|message|>{}<|call|>";
  for (const auto& ends : {std::vector<std::size_t>{}, single_bytes(text)}) {
    const Joined all = stream(calls, text, ends);
    CHECK(all.reasoning == "Hm.");
    CHECK(all.text == "Wait < a bit.");
    CHECK(all.calls == std::vector<ToolCall>{{"get_time"}});
  }
  CHECK(stream(calls, "Hello").text == "Hello");
}

TEST_CASE("CallStream over an answer that is a schema's value emits it as text") {
  const ToolCallFSM calls{
      test::byte_vocabulary(), documents(), JsonCall::hermes(),
      ChoiceOptions{.text_schema = tooldecode::text::parse_json(R"({"type": "object"})")}};
  const std::string value = R"({"a": "<tool_call>"})";
  CHECK(stream(calls, value, single_bytes(value)).text == value);
}

TEST_CASE(
    "CallStream takes control tokens as delimiters and throws for bytes the constraint refuses") {
  const Vocabulary vocabulary = test::byte_vocabulary({{"<tool_call>", TokenType::control},
                                                       {"</tool_call>", TokenType::control},
                                                       {"gap", TokenType::unused}});
  const ToolCallFSM calls{vocabulary, documents(), JsonCall::hermes()};
  CallStream stream(calls);
  Joined all;
  join(stream.push("Hm. "), all);
  join(stream.push(TokenId{257}), all);
  join(stream.push("\n{\"name\": \"get_time\", \"arguments\": {}}\n"), all);
  join(stream.push(TokenId{258}), all);
  join(stream.push(TokenId{256}), all);
  CHECK(all.text == "Hm. ");
  CHECK(all.calls == std::vector<ToolCall>{{"get_time"}});
  CHECK(all.whole);
  CHECK(stream.finish().empty());
  const auto error_of = [](const auto& run) {
    try {
      static_cast<void>(run());
    } catch (const Error& e) {
      return std::string(name(e.code())) + " " + e.where();
    }
    return std::string("none");
  };
  CHECK(error_of([&] { return stream.push("x"); }) == "malformed_call byte 70");
  CHECK(error_of([&] { return CallStream(calls).push("<tool_call>{"); }) ==
        "malformed_call byte 11");
  CHECK(error_of([&] { return CallStream(calls).push("<tool_call>\n\xFF"); }) ==
        "malformed_call byte 12");
  CHECK(error_of([&] { return CallStream(calls).push("a\xFF<tool_call>\xFE"); }) ==
        "malformed_call byte 1");
  CHECK(error_of([&] { return CallStream(calls).push(TokenId{259}); }) == "malformed_call byte 0");
  CHECK(error_of([&] { return CallStream(calls).push(TokenId{260}); }) == "unknown_token 260");
}
