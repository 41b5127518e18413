#include <map>
#include <string>
#include <vector>

#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/text_dfa.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/format_checks.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

namespace {

const std::vector<ToolCall> two{{"get_weather", {{"city", "Paris"}, {"days", 2}}}, {"m.now"}};

std::string error_of(const DelimitedCall& format, std::string_view text) {
  return test::error_of([&] { return format.parse(text, {}); });
}

void check(const DelimitedCall& format, const std::vector<ToolCall>& calls,
           const std::string& text) {
  INFO(text);
  CHECK(format.write(calls) == text);
  CHECK(format.parse(text, {}) == calls);
  CHECK(format.parse("One moment.\n" + text + "\n", {}) == calls);
  CHECK(format.parse("One moment.", {}).empty());
  CHECK(format.write({}).empty());
}

}  // namespace

TEST_CASE("DelimitedCall of DeepSeek writes calls as the templates of V3 and V3.1 do") {
  check(DelimitedCall::deepseek_v3(), two,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        "{\"city\": \"Paris\", \"days\": 2}\n```<｜tool▁call▁end｜>\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>m.now\n```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>");
  check(DelimitedCall::deepseek_v3_1(), two,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        "{\"city\": \"Paris\", \"days\": 2}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>m.now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
}

TEST_CASE("DelimitedCall::kimi_k2 numbers the calls it writes and reads any number") {
  check(DelimitedCall::kimi_k2(), two,
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        "<|tool_call_argument_begin|>{\"city\": \"Paris\", \"days\": 2}<|tool_call_end|>"
        "<|tool_call_begin|>functions.m.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>");
  const auto read = DelimitedCall::kimi_k2().parse(
      "<|tool_calls_section_begin|>\n<|tool_call_begin|>functions.a:b:17\n"
      "<|tool_call_argument_begin|>{}<|tool_call_end|>\n<|tool_calls_section_end|>",
      {});
  REQUIRE(read.size() == 1);
  CHECK(read[0].name == "a:b");
}

TEST_CASE("DelimitedCall::mistral writes arguments after a mark") {
  check(DelimitedCall::mistral(), two,
        "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\", \"days\": 2}[TOOL_CALLS]m.now[ARGS]{}");
}

TEST_CASE("DelimitedCall::mistral reads calls with an identifier of nine characters") {
  const DelimitedCall mistral = DelimitedCall::mistral();
  const ToolSet tools         = ToolSet::parse(R"([{"name": "f", "parameters": {}}])");
  const std::string named     = "[TOOL_CALLS]f[CALL_ID]aB3456789[ARGS]{}";
  CHECK(mistral.parse(named + named, tools) == std::vector<ToolCall>{{"f"}, {"f"}});
  CHECK(mistral.parse(named, {}) == std::vector<ToolCall>{{"f"}});
  CHECK(test::refused(mistral, tools, named + "[TOOL_CALLS]f[ARGS]{}") == -1);
  CHECK(test::refused(mistral, tools, "[TOOL_CALLS]f[CALL_ID]aB345678[ARGS]{}") == 30);
  CHECK(test::refused(mistral, tools, "[TOOL_CALLS]f[CALL_ID]aB34567890[ARGS]{}") == 31);
  CHECK(test::refused(mistral, tools, "[TOOL_CALLS]g[CALL_ID]aB3456789[ARGS]{}") == 12);
}

TEST_CASE(
    "DelimitedCall::deepseek_v3 in loose form reads a fence that the arguments' line closes") {
  const DelimitedCall deepseek = DelimitedCall::deepseek_v3();
  const ToolSet tools          = ToolSet::parse(R"([{"name": "f", "parameters": {}}])");
  const std::string text =
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
      "{}```<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
  CHECK(deepseek.parse(text, tools) == std::vector<ToolCall>{{"f"}});
  CHECK(test::refused(deepseek, tools, text) == -1);
  CHECK(test::refused(deepseek, tools, text, {}) > 0);
}

TEST_CASE("DelimitedCall::kimi_k2 in loose form may omit marks but still checks the arguments") {
  const DelimitedCall kimi = DelimitedCall::kimi_k2();
  const ToolSet tools      = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}}, "required": ["a"]}}])");
  const std::string begin  = "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>";
  const std::string call   = begin + "{\"a\": 1}";
  const std::string end    = "<|tool_call_end|>";
  const ToolCall one{"f", {{"a", 1}}};
  for (const std::string& text :
       {call, call + end, "So. " + call + call, call + end + call,
        call + "<|tool_calls_section_end|>", "<|tool_calls_section_begin|>" + call,
        "<|tool_calls_section_begin|>" + call + end + "\n"}) {
    INFO(text);
    CHECK(test::refused(kimi, tools, text) == -1);
    const auto read = kimi.parse(text, tools);
    CHECK_FALSE(read.empty());
    for (const ToolCall& found : read) CHECK(found == one);
  }
  const auto at = [&](const std::string& text, const ChoiceOptions& options = test::loose()) {
    return test::refused(kimi, tools, text, options);
  };
  CHECK(at("<|tool_call_begin|>functions.g") == 29);
  CHECK(at("<|tool_call_begin|>x") == 19);
  CHECK(at(begin + "{}") == static_cast<int>(begin.size()) + 1);
  CHECK(at("<|tool_call_section_begin|>") == 26);
  CHECK(at("\xff<|tool_call_begin|>\xfe-") == 21);
  CHECK(at(call, test::loose({.choice = ToolChoice::required})) == -1);
  CHECK(at("<|tool_call_begin|>", test::loose({.choice = ToolChoice::none})) == 18);
  CHECK(at(call, {.choice = ToolChoice::required}) != -1);
  // A call ends a reasoning block.
  for (const ToolChoice choice : {ToolChoice::automatic, ToolChoice::required, ToolChoice::none}) {
    const ChoiceOptions options =
        test::loose({.choice = choice, .reasoning = ReasoningDelimiters{}});
    const bool calls = choice != ToolChoice::none;
    CHECK((at("<think>Hm. " + call, options) == -1) == calls);
    CHECK((at("<think>Hm. <|tool_calls_section_begin|>" + call, options) == -1) == calls);
    CHECK((at("<think>Hm.</think>" + call, options) == -1) == calls);
    CHECK(at("<think>Hm. <|tool_call_begin|>functions.g", options) == (calls ? 40 : 29));
    CHECK(at("<think>Hm. <|tool_call_begin|></think>", options) == (calls ? 30 : 29));
  }
}

TEST_CASE("DelimitedCall allows no free text that other readers take for a mark") {
  const auto refused = [](const DelimitedCall& format, const std::string& text) {
    return test::refused(format, ToolSet::parse(R"([{"name": "f", "parameters": {}}])"), text);
  };
  const DelimitedCall deepseek = DelimitedCall::deepseek_v3();
  for (const std::string delimiter :
       {"<｜tool▁call▁begin｜>", "<｜tool▁calls｜>", "<｜tool_calls_begin｜>",
        "<｜tool calls begin｜>", "<｜tool\\_calls\\_begin｜>"}) {
    CHECK(refused(deepseek, "a <" + delimiter) == static_cast<int>(delimiter.size()) + 2);
    CHECK(refused(DelimitedCall::deepseek_v3_1(), delimiter) ==
          static_cast<int>(delimiter.size()) - 1);
    CHECK(refused(deepseek, delimiter.substr(0, delimiter.size() - 1)) == -1);
  }
  const DelimitedCall react = DelimitedCall::react();
  const std::string call    = "f\nAction Input: {}";
  CHECK(refused(react, "Action: " + call) == -1);
  CHECK(refused(react, "Action: g") == 8);
  CHECK(refused(react, "Action:" + call) == 7);
  CHECK(refused(react, "Action :" + call) == 7);
  CHECK(refused(react, "Action 1: " + call) == 8);
  CHECK(refused(react, "Action1:" + call) == 7);
  CHECK(refused(react, "ActionAction \n 12\n:" + call) == 18);
  CHECK(refused(react, "Action:\n" + call) == 7);
  CHECK(refused(react, "Actions: reaction: Action.") == -1);
}

TEST_CASE("DelimitedCall reads tool names back unchanged, or refuses the tool with its place") {
  const auto set = [](const std::string& name) {
    return ToolSet::from_json(Json::array({{{"name", name}, {"parameters", Json::object()}}}));
  };
  const auto refusal = [&](const DelimitedCall& format, const std::string& name) {
    try {
      static_cast<void>(test::refused(format, set(name), ""));
      return std::string("none");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unsupported_name);
      return error.where();
    }
  };
  for (const DelimitedCall& format :
       {DelimitedCall::mistral(), DelimitedCall::deepseek_v3(), DelimitedCall::deepseek_v3_1(),
        DelimitedCall::kimi_k2(), DelimitedCall::react()}) {
    for (const std::string name : {" f ", "f:1", "a b", "[A]", "<f>"}) {
      const std::string text = format.write(std::vector<ToolCall>{{name}});
      CHECK(format.parse(text, set(name)) == std::vector<ToolCall>{{name}});
      CHECK(test::refused(format, set(name), text) == -1);
    }
    CHECK(refusal(format, "x" + std::string(formats::trimmed(format.middle))) == "#/0/name");
    CHECK(refusal(format, std::string(formats::trimmed(format.begin))) == "#/0/name");
  }
  CHECK(refusal(DelimitedCall::mistral(), "f[CALL_ID]x") == "#/0/name");
}

TEST_CASE("DelimitedCall::react writes and reads one action") {
  const DelimitedCall react = DelimitedCall::react();
  const std::vector<ToolCall> one{two[0]};
  const std::string action =
      "Action: get_weather\nAction Input: {\"city\": \"Paris\", \"days\": 2}";
  check(react, one, action);
  CHECK(react.parse("Thought: I should look.\n" + action + "\n", {}) == one);
  CHECK_THROWS_AS(react.write(two), Error);
  CHECK(error_of(react, action + "\nObservation: rain") == "malformed_call byte 63");
}

TEST_CASE("DelimitedCall::parse of a broken call throws with its byte") {
  const std::map<std::string, std::string> cases = {{"[TOOL_CALLS]", "byte 12"},
                                                    {"[TOOL_CALLS]f", "byte 12"},
                                                    {"[TOOL_CALLS][ARGS]{}", "byte 12"},
                                                    {"[TOOL_CALLS]f\ng[ARGS]{}", "byte 12"},
                                                    {"[TOOL_CALLS]f\xff[ARGS]{}", "byte 12"},
                                                    {"[TOOL_CALLS]f[ARGS]", "byte 19"},
                                                    {"[TOOL_CALLS]f[ARGS][]", "byte 19"},
                                                    {"[TOOL_CALLS]f[ARGS]{\"a\": 01}", "byte 25"},
                                                    {"[TOOL_CALLS]f[ARGS]{} and", "byte 22"},
                                                    {"[TOOL_CALLS]f[ARGS]{}[TOOL_CALL", "byte 21"}};
  for (const auto& [text, where] : cases) {
    INFO(text);
    CHECK(error_of(DelimitedCall::mistral(), text) == "malformed_call " + where);
  }
  const std::string begin = "<|tool_calls_section_begin|><|tool_call_begin|>functions.";
  for (const std::string rest : {"f", "f:", "f:x", ":1"}) {
    INFO(rest);
    CHECK(error_of(DelimitedCall::kimi_k2(), begin + rest + "<|tool_call_argument_begin|>{}") ==
          "malformed_call byte " + std::to_string(begin.size()));
  }
}

TEST_CASE("DelimitedCall::plamo_3 writes requests in one section, without white space") {
  const std::string named = "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>";
  const std::string arguments =
      "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>"
      "<|plamo:constrain|>json<|plamo:msg|>";
  const std::string ended = "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>";
  check(DelimitedCall::plamo_3(), two,
        "<|plamo:begin_tool_requests:plamo|>" + named + "get_weather" + arguments +
            "{\"city\": \"Paris\", \"days\": 2}" + ended + named + "m.now" + arguments + "{}" +
            ended + "<|plamo:end_tool_requests:plamo|>");
}

TEST_CASE(
    "DelimitedCall of Functionary reads elements, or names of which the prompt begins the first") {
  check(DelimitedCall::functionary_3_1(), two,
        "<function=get_weather>{\"city\": \"Paris\", \"days\": 2}</function><function=m.now>{}"
        "</function>");
  const DelimitedCall format = DelimitedCall::functionary_3_2();
  const ToolSet tools        = ToolSet::parse(
      R"([{"name": "get_weather", "parameters": {"type": "object", "properties":
          {"city": {"type": "string"}, "days": {"type": "integer"}}}}, {"name": "m.now"}])");
  const std::string text = "get_weather\n{\"city\": \"Paris\", \"days\": 2}>>>m.now\n{}";
  CHECK(format.write(two) == text);
  CHECK(format.parse(text, tools) == two);
  CHECK(format.parse("all\nSo.>>>" + text, tools) == two);
  CHECK(format.parse("all\nm.now\n{}", tools).empty());
  CHECK(format.parse("other\n{}", tools).empty());
  for (const ChoiceOptions& options : {ChoiceOptions{}, test::loose()}) {
    CHECK(test::refused(format, tools, text, options) == -1);
    CHECK(test::refused(format, tools, "all\nSo.>>>" + text, options) == -1);
    CHECK(test::refused(format, tools, "all\nThat is all\n", options) == -1);
    CHECK(test::refused(format, tools, "So, that is all\n", options) == -1);
    CHECK(test::refused(format, tools, "all\nSo.>>>other\n{}", options) >= 0);
    CHECK(test::refused(format, tools, "all\nSo>>>>m.now\n{}", options) == 9);
    CHECK(test::refused(format, tools, "all\nSo>> >>>m.now\n{}", options) == -1);
    CHECK(test::refused(format, tools, "m.now\nSo.", options) == 6);
  }
  CHECK(test::refused(format, tools, "So.>>>" + text) == 5);
  ChoiceOptions none = test::loose();
  none.choice        = ToolChoice::none;
  CHECK(test::refused(format, tools, "all\nm.now", none) == -1);
  CHECK(test::refused(format, tools, "m.now\n{}", none) == 5);
  ChoiceOptions required = test::loose();
  required.choice        = ToolChoice::required;
  CHECK(test::refused(format, tools, text, required) == -1);
  CHECK(test::refused(format, tools, "all\nSo.", required) == 0);
  for (const char* name : {"all", " f", "f>>>"}) {
    const ToolSet hostile = ToolSet::from_json(Json::array({Json{{"name", name}}}));
    CHECK_THROWS_AS(build_call_grammar(format, hostile), Error);
  }
}
