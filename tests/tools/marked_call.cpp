#include <map>
#include <string>
#include <vector>

#include <tooldecode/tools/marked_call.hpp>

#include <support/catch.hpp>
#include <support/format_checks.hpp>

using namespace tooldecode;
using Json = nlohmann::ordered_json;

namespace {

const std::vector<ToolCall> two{{"get_weather", {{"city", "Paris"}, {"days", 2}}}, {"m.now"}};

std::string error_of(const MarkedCall& format, std::string_view text) {
  try {
    static_cast<void>(format.parse(text, {}));
  } catch (const Error& e) {
    return std::string(name(e.code())) + " " + e.where();
  }
  return "none";
}

void check(const MarkedCall& format, const std::vector<ToolCall>& calls, const std::string& text) {
  INFO(text);
  CHECK(format.write(calls) == text);
  CHECK(format.parse(text, {}) == calls);
  CHECK(format.parse("One moment.\n" + text + "\n", {}) == calls);
  CHECK(format.parse("One moment.", {}).empty());
  CHECK(format.write({}).empty());
}

}  // namespace

TEST_CASE("DeepSeek's calls, as the templates of V3 and V3.1 write them") {
  check(MarkedCall::deepseek_v3(), two,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        "{\"city\": \"Paris\", \"days\": 2}\n```<｜tool▁call▁end｜>\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>m.now\n```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>");
  check(MarkedCall::deepseek_v3_1(), two,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        "{\"city\": \"Paris\", \"days\": 2}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>m.now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>");
}

TEST_CASE("Kimi K2's calls are numbered, from any number on") {
  check(MarkedCall::kimi_k2(), two,
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        "<|tool_call_argument_begin|>{\"city\": \"Paris\", \"days\": 2}<|tool_call_end|>"
        "<|tool_call_begin|>functions.m.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>");
  const auto read = MarkedCall::kimi_k2().parse(
      "<|tool_calls_section_begin|>\n<|tool_call_begin|>functions.a:b:17\n"
      "<|tool_call_argument_begin|>{}<|tool_call_end|>\n<|tool_calls_section_end|>",
      {});
  REQUIRE(read.size() == 1);
  CHECK(read[0].name == "a:b");
}

TEST_CASE("gpt-oss calls tools in its commentary") {
  check(MarkedCall::harmony(), two,
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        "{\"city\": \"Paris\", \"days\": 2}<|call|><|start|>assistant"
        "<|channel|>commentary to=functions.m.now <|constrain|>json<|message|>{}<|call|>");
  const std::string thought = "<|channel|>analysis<|message|>Which tool?<|end|><|start|>assistant";
  CHECK(MarkedCall::harmony().parse(thought + MarkedCall::harmony().write(two), {}) == two);
  const ToolSet tools = ToolSet::parse(R"([{"name": "m.now", "parameters": {}}])");
  const auto call     = MarkedCall::harmony().write(std::vector{two[1]});
  CHECK(test::refused(MarkedCall::harmony(), tools, thought + call) == -1);
  ChoiceOptions options{.choice = ToolChoice::required};
  CHECK(test::refused(MarkedCall::harmony(), tools, thought + call, options) != -1);
  options.reasoning = MarkedCall::harmony_analysis();
  CHECK(test::refused(MarkedCall::harmony(), tools, thought + call, options) == -1);
}

TEST_CASE("gpt-oss's last call may end with the text's end") {
  const MarkedCall harmony = MarkedCall::harmony();
  const ToolSet tools      = ToolSet::parse(R"([{"name": "m.now", "parameters": {}}])");
  const auto text          = harmony.write(std::vector{two[1]});
  const auto cut           = text.substr(0, text.size() - std::string_view("<|call|>").size());
  CHECK(harmony.parse(cut, tools) == std::vector{two[1]});
  CHECK(test::refused(harmony, tools, cut) == -1);
  const std::string next = "<|start|>assistant" + text;
  CHECK(test::refused(harmony, tools, text + next) == -1);
  CHECK(test::refused(harmony, tools, cut + next) == static_cast<int>(cut.size() + 2));
  CHECK(error_of(harmony, cut + next) != "none");
}

TEST_CASE("Mistral's calls with their arguments behind a mark") {
  check(MarkedCall::mistral(), two,
        "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\", \"days\": 2}[TOOL_CALLS]m.now[ARGS]{}");
}

TEST_CASE("ReAct has one action") {
  const MarkedCall react = MarkedCall::react();
  const std::vector<ToolCall> one{two[0]};
  const std::string action =
      "Action: get_weather\nAction Input: {\"city\": \"Paris\", \"days\": 2}";
  check(react, one, action);
  CHECK(react.parse("Thought: I should look.\n" + action + "\n", {}) == one);
  CHECK_THROWS_AS(react.write(two), Error);
  CHECK(error_of(react, action + "\nObservation: rain") == "malformed_call byte 63");
}

TEST_CASE("Broken calls are errors with the byte") {
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
    CHECK(error_of(MarkedCall::mistral(), text) == "malformed_call " + where);
  }
  const std::string begin = "<|tool_calls_section_begin|><|tool_call_begin|>functions.";
  for (const std::string rest : {"f", "f:", "f:x", ":1"}) {
    INFO(rest);
    CHECK(error_of(MarkedCall::kimi_k2(), begin + rest + "<|tool_call_argument_begin|>{}") ==
          "malformed_call byte " + std::to_string(begin.size()));
  }
}
