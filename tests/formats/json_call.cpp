#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/data.hpp>
#include <support/format_checks.hpp>
#include <support/mutate.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

const JsonCall hermes = JsonCall::hermes();

std::string error_of(std::string_view text) {
  return test::error_of([&] { return hermes.parse(text, {}); });
}

}  // namespace

TEST_CASE("JsonCall::hermes writes calls as Qwen's template does and reads them back") {
  const std::vector<ToolCall> calls{
      {"f", tooldecode::text::parse_json(R"({"a": 1, "b": ["é", null]})")}, {"m.g"}};
  const std::string text =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": [\"é\", null]}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"m.g\", \"arguments\": {}}\n</tool_call>";
  CHECK(hermes.write(calls) == text);
  CHECK(hermes.parse(text, {}) == calls);
  CHECK(hermes.parse("Let me see.\n" + text + "\n", {}) == calls);
  CHECK(
      hermes.parse("<tool_call>{\"arguments\":{\"b\":[\"\\u00e9\",null],\"a\":1e0},\"name\":\"f\"}"
                   "</tool_call><tool_call> {\"name\":\"m.g\",\"arguments\":{}}</tool_call>",
                   {}) == calls);
  CHECK(hermes.parse("no call at all", {}).empty());
  CHECK(hermes.parse("", {}).empty());
  CHECK(hermes.write({}).empty());
}

TEST_CASE("JsonCall with other delimiters writes and reads calls between these") {
  const JsonCall brackets{"<<", ">>", " "};
  const std::vector<ToolCall> calls{{"f"}, {"g"}};
  const std::string text = brackets.write(calls);
  CHECK(text ==
        "<< {\"name\": \"f\", \"arguments\": {}} >> << {\"name\": \"g\", \"arguments\": {}} >>");
  CHECK(brackets.parse(text, {}) == calls);
}

TEST_CASE("JsonCall writes and reads calls inside one pair of marks, or without marks") {
  const std::vector<ToolCall> calls{{"f", Json{{"a", 1}}}, {"g"}};
  const auto check = [&](const JsonCall& format, const std::string& text) {
    CAPTURE(text);
    CHECK(format.write(calls) == text);
    CHECK(format.parse(text, {}) == calls);
    CHECK(format.parse("\n" + text + "\n", {}) == calls);
    CHECK(format.parse("Hello.", {}).empty());
    CHECK(format.write({}).empty());
  };
  check(JsonCall::llama(),
        "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"a\": 1}}; "
        "{\"name\": \"g\", \"parameters\": {}}");
  check(JsonCall::mistral(),
        "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, "
        "{\"name\": \"g\", \"arguments\": {}}]");
  check(JsonCall::bare(),
        "{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n"
        "{\"name\": \"g\", \"arguments\": {}}");
  check(JsonCall::bare_list(),
        "[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, "
        "{\"name\": \"g\", \"arguments\": {}}]");
  CHECK(JsonCall::mistral().parse("So [TOOL_CALLS][{\"name\":\"g\",\"arguments\":{}}]", {}) ==
        std::vector{calls[1]});
  CHECK(JsonCall::bare().parse("So {\"name\": \"g\", \"arguments\": {}}", {}).empty());
  const auto error = [](const JsonCall& format, std::string_view text) {
    try {
      static_cast<void>(format.parse(text, {}));
    } catch (const Error& e) {
      return e.where();
    }
    return std::string("none");
  };
  const std::string call = "{\"name\": \"g\", \"parameters\": {}}";
  CHECK(error(JsonCall::llama(), "<|python_tag|>") == "byte 14");
  CHECK(error(JsonCall::llama(), "<|python_tag|>" + call + " " + call) == "byte 46");
  CHECK(error(JsonCall::llama(), "<|python_tag|>" + call + ";") == "byte 46");
  CHECK(error(JsonCall::mistral(), "[TOOL_CALLS]{}") == "byte 12");
  CHECK(error(JsonCall::mistral(), "[TOOL_CALLS][" + call + "]") == "byte 13");
  CHECK(error(JsonCall::bare_list(), "[]") == "byte 1");
  CHECK(error(JsonCall::bare(), call) == "byte 0");
}

TEST_CASE("JsonCall::llama in loose form needs no mark where an answer begins with a call") {
  const JsonCall llama     = JsonCall::llama();
  const ToolSet tools      = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}}, "required": ["a"]}}])");
  const std::string call   = R"({"name": "f", "parameters": {"a": 1}})";
  const std::string marked = "<|python_tag|>" + call;
  const ToolCall one{"f", {{"a", 1}}};
  for (const std::string& text : {call, "\n" + call, marked, "So. " + marked, call + "; " + call}) {
    INFO(text);
    CHECK(test::refused(llama, tools, text) == -1);
    for (const ToolCall& read : llama.parse(text, tools)) CHECK(read == one);
    CHECK(llama.parse(text, tools).size() == (text.find(';') == std::string::npos ? 1 : 2));
  }
  CHECK(llama.parse("So. " + call, tools).empty());
  CHECK(test::refused(llama, tools, "So. " + call) == -1);
  CHECK(test::refused(llama, tools, R"({"name": "g")") == 10);
  CHECK(test::refused(llama, tools, R"({"name": "f", "parameters": {}})") == 29);
  CHECK(test::refused(llama, tools, "\v {\"a\": 1}") == 2);
  CHECK(test::refused(llama, tools, call, test::loose({.choice = ToolChoice::required})) == -1);
  CHECK(test::refused(llama, tools, call, test::loose({.choice = ToolChoice::none})) == 0);
  CHECK(test::refused(llama, tools, call, {.choice = ToolChoice::required}) == 0);
  CHECK(test::refused(llama, tools, call, ChoiceOptions{}) == -1);
  CHECK(test::refused(llama, tools, call + "; " + call, ChoiceOptions{}) == -1);
  CHECK(test::refused(llama, tools, R"({"name":"f")", ChoiceOptions{}) == 8);
  CHECK(test::refused(llama, tools, R"({"type": "function", "name": "f", "parameters": {"a": 1}})",
                      ChoiceOptions{}) == -1);
  CHECK(test::refused(llama, tools, call, {.choice = ToolChoice::none}) == 0);
}

TEST_CASE("JsonCall::llama reads and constrains calls that begin with their type") {
  const JsonCall llama     = JsonCall::llama();
  const ToolSet tools      = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"type": {"type": "string"}}}}])");
  const std::string typed  = R"({"type": "function", "name": "f", "parameters": {"type": "x"}})";
  const std::string marked = "<|python_tag|>" + typed;
  const ToolCall one{"f", {{"type", "x"}}};
  for (const std::string& text :
       {typed, marked, "So. " + marked, typed + "; " + llama.write(std::vector{one}).substr(14),
        std::string(R"({"type":"function","name":"f","parameters":{"type":"x"}})"),
        std::string(
            "{\"type\": \"function\",\n \"name\": \"f\", \"parameters\": {\"type\": \"x\"}}")}) {
    CAPTURE(text);
    for (const ToolCall& read : llama.parse(text, tools)) CHECK(read == one);
    CHECK(llama.parse(text, tools).size() == (text.find(';') == std::string::npos ? 1 : 2));
    CHECK(test::refused(llama, tools, text) == -1);
    const auto required = test::loose({.choice = ToolChoice::required});
    CHECK((test::refused(llama, tools, text, required) == -1) == !text.starts_with("So"));
  }
  CHECK(llama.write(std::vector{one}) ==
        R"(<|python_tag|>{"name": "f", "parameters": {"type": "x"}})");
  // Refused like every layout but the format's, where it is the only one.
  CHECK(test::refused(llama, tools, marked, {.choice = ToolChoice::required}) == 16);
  CHECK(test::refused(llama, tools, R"({"type": "tool)") == 10);
  CHECK(test::refused(llama, tools, R"({"type": "function", "parameters")") == 22);
  for (const char* other : {R"({"type": "tool", "name": "f", "parameters": {}})",
                            R"({"type": 1, "name": "f", "parameters": {}})"}) {
    CHECK_THROWS_AS(llama.parse(other, tools), Error);
  }
  CHECK_THROWS_AS(
      JsonCall::bare().parse(R"({"type": "function", "name": "f", "arguments": {}})", tools),
      Error);
}

TEST_CASE(
    "JsonCall::qwen_2_5 reads a fence or object as a call where it begins with a tool's name") {
  const JsonCall format = JsonCall::qwen_2_5();
  const ToolSet tools   = ToolSet::parse(
      R"([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
          {"name": "q\"t", "parameters": {"type": "object", "properties": {}}}])");
  const std::vector<ToolCall> one{{"f", Json{{"a", 1}}}};
  CHECK(format.write(one) == hermes.write(one));
  CHECK(format.parse(hermes.write(one), tools) == one);
  for (const std::string object :
       {R"({"name":"f","arguments":{"a":1}})", R"({"name": "f", "arguments": {"a": 1}})",
        "{\n  \"name\": \"f\",\n  \"arguments\": {\n    \"a\": 1\n  }\n}",
        "{\n    \"name\": \"f\",\n    \"arguments\": {\n        \"a\": 1\n    }\n}"}) {
    CAPTURE(object);
    const std::string fence = "```json\n" + object + "\n```";
    CHECK(format.parse(object, tools) == one);
    CHECK(format.parse("\n" + object + "\n", tools) == one);
    CHECK(format.parse("So: " + object, tools).empty());
    CHECK(format.parse("So:\n" + fence, tools) == one);
    CHECK(format.parse("```json\n{}\n```\n" + fence, tools) == one);
    CHECK(format.parse(fence + "\n" + fence, tools).size() == 2);
    CHECK(format.parse(object + "\n" + object, tools).size() == 2);
    CHECK(format.parse(hermes.write(one), tools) == one);
    CHECK(hermes.parse(fence, tools).empty());
  }
  for (const std::string text :
       {"{\"name\": \"g\", \"arguments\": {}}", "{\"arguments\": {}, \"name\": \"f\"}",
        "```json\n{\"name\": \"Ann\"}\n```", "```\n{\"name\": \"f\", \"arguments\": {}}\n```",
        "```json\n{ \"name\": \"f\", \"arguments\": {}}\n```"}) {
    CAPTURE(text);
    CHECK(format.parse(text, tools).empty());
  }
  CHECK(format.parse(R"({"name": "q\"t", "arguments": {}})", tools) ==
        std::vector<ToolCall>{{"q\"t"}});
  CHECK_THROWS_AS(format.parse(R"({"name": "f"})", tools), Error);
  CHECK_THROWS_AS(format.parse("```json\n{\"name\": \"f\", \"arguments\": {}}", tools), Error);
  CHECK_THROWS_AS(format.parse(R"({"name": "f", "arguments": {}} or so)", tools), Error);
}

TEST_CASE("JsonCall::mistral reads calls with an identifier of nine characters") {
  const JsonCall mistral  = JsonCall::mistral();
  const ToolSet tools     = ToolSet::parse(R"([{"name": "f", "parameters": {}}])");
  const std::string begin = R"([TOOL_CALLS][{"name": "f", "arguments": {})";
  const std::string named = begin + R"(, "id": "aB3456789"}])";
  CHECK(mistral.parse(named, tools) == std::vector<ToolCall>{{"f"}});
  CHECK(test::refused(mistral, tools, named) == -1);
  CHECK(test::refused(mistral, tools, begin + "}]") == -1);
  CHECK(test::refused(mistral, tools, begin + R"(, "id": "aB345678"}])") ==
        static_cast<int>(begin.size()) + 17);
  CHECK(test::refused(mistral, tools, begin + R"(, "x")") == static_cast<int>(begin.size()) + 3);
  CHECK(test::error_of(mistral, tools, begin + R"(, "id": 1}])") != "none");
  CHECK(test::error_of(hermes, tools,
                       R"(<tool_call>{"name": "f", "arguments": {}, "id": "aB3456789"})") !=
        "none");
}

TEST_CASE("JsonCall::parse of a broken Hermes call throws with its byte") {
  const std::map<std::string, std::string> cases = {
      {"<tool_call>", "byte 11"},
      {"<tool_call>\n{\"name\": \"f\"", "byte 24"},
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}", "byte 42"},
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call> and more", "byte 56"},
      {"<tool_call>\n{\"name\": \"f\"}</tool_call>", "byte 12"},
      {"<tool_call>\n{\"name\": 5, \"arguments\": {}}</tool_call>", "byte 12"},
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": []}</tool_call>", "byte 12"},
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}, \"x\": 1}</tool_call>", "byte 12"},
      {"<tool_call>\n[]</tool_call>", "byte 12"}};
  for (const auto& [text, where] : cases) {
    INFO(text);
    CHECK(error_of(text) == "malformed_call " + where);
  }
}

TEST_CASE("JsonCall::parse of a repeated key keeps the last value") {
  const std::string text =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1, \"a\": 2}}\n</tool_call>";
  CHECK(JsonCall::hermes().parse(text, {})[0].arguments.text() == R"({"a":2})");
}

TEST_CASE("JsonCall::hermes reads published calls back as it has written them") {
  int rows = 0;
  for (const char* file : {"bfcl/live_multiple.jsonl.gz", "bfcl/parallel_multiple.jsonl",
                           "bfcl/simple_python.jsonl", "apibank/level1.jsonl"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const auto& row : test::read_jsonl(path)) {
      const auto& json = row["call_json"];
      std::vector<ToolCall> calls;
      for (const auto& call : json.is_array() ? json : tooldecode::JsonValue::array({json})) {
        calls.push_back({call["name"].string(), Json(call["arguments"])});
      }
      INFO(row["id"]);
      CHECK(hermes.parse(hermes.write(calls), {}) == calls);
      ++rows;
    }
  }
  CHECK(rows > 1000);
}

TEST_CASE(
    "JsonCall::parse of mutated Hermes text gives calls that write and read back, or an error") {
  const std::vector<ToolCall> seeds{
      {"f", tooldecode::text::parse_json(R"({"a": {"x": [1, "\n"]}, "b": -2.5})")}, {"g"}};
  const std::string seed_text     = hermes.write(seeds);
  const std::string_view alphabet = "<>{}[]\",:\\ \n/ae0-\xff";
  int read                        = 0;
  for (unsigned seed = 0; seed < 10000; ++seed) {
    std::mt19937 random(seed);
    std::string text = seed_text;
    test::mutate(text, alphabet, random() % 4, random);
    CAPTURE(seed, text);
    std::vector<ToolCall> calls;
    try {
      calls = hermes.parse(text, {});
    } catch (const Error& e) {
      REQUIRE(e.code() == Errc::malformed_call);
      continue;
    }
    REQUIRE(hermes.parse(hermes.write(calls), {}) == calls);
    ++read;
  }
  CHECK(read > 2500);
}

TEST_CASE("JsonCall of each family writes calls in its template's white space alone") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}},
    {"name": "g"}])");
  const std::vector<ToolCall> calls{{"f", Json{{"a", 1}}}, {"g"}};
  const std::string f = "{\"name\": \"f\", \"arguments\": {\"a\": 1}}";
  const std::string g = "{\"name\": \"g\", \"arguments\": {}}";
  const std::vector<std::pair<JsonCall, std::string>> cases{
      {JsonCall::exaone(), "<tool_call>" + f + "</tool_call><tool_call>" + g + "</tool_call>"},
      {JsonCall::longcat(), "<longcat_tool_call>\n" + f +
                                "\n</longcat_tool_call>\n<longcat_tool_call>\n" + g +
                                "\n</longcat_tool_call>"},
      {JsonCall::granite(), "<|tool_call|>[" + f + ", " + g + "]"},
      {JsonCall::nemotron(), "<TOOLCALL>[" + f + ", " + g + "]</TOOLCALL>"},
      {JsonCall::apriel(), "<tool_calls>[" + f + ", " + g + "]</tool_calls>"},
      {JsonCall::phi_4_mini(), "<|tool_call|>[" + f + ", " + g + "]<|/tool_call|>"},
      {JsonCall::firefunction(), "functools[" + f + ", " + g + "]"},
      {JsonCall::gigachat_3_1(), "<|function_call|>" + f + "<|function_call|>" + g},
      {JsonCall::gigachat_3(),
       "function call<|role_sep|>\n" + f + "\nfunction call<|role_sep|>\n" + g},
      {JsonCall::internlm(),
       "<|action_start|><|plugin|>\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|action_end|>\n"
       "<|action_start|><|plugin|>\n{\"name\": \"g\", \"parameters\": {}}<|action_end|>"},
      {JsonCall::apertus(), "<|tools_prefix|>[{\"f\": {\"a\": 1}}, {\"g\": {}}]<|tools_suffix|>"},
      {JsonCall::command_r7b(),
       "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": "
       "{\"a\": 1}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"g\", \"parameters\": {}}\n]"
       "<|END_ACTION|>"},
      {JsonCall::command_r_plus(),
       "Action:\n```json\n[\n    {\"tool_name\": \"f\", \"parameters\": {\"a\": 1}},\n    "
       "{\"tool_name\": \"g\", \"parameters\": {}}\n]\n```"},
      {JsonCall::fence(), "```json\n" + f + "\n```\n```json\n" + g + "\n```"},
  };
  for (const auto& [format, text] : cases) {
    CAPTURE(text);
    CHECK(format.write(calls) == text);
    CHECK(format.parse(text, tools) == calls);
    CHECK(format.parse("So. " + text + "\n", tools) == calls);
    CHECK(test::refused(format, tools, text, {}) == -1);
    CHECK(test::refused(format, tools, "So. " + text, {}) == -1);
    CHECK(test::refused(format, tools, text) == -1);
    CHECK(test::refused(format, tools, text, {.whitespace = 1}) == -1);
    CHECK(test::refused(format, tools, text + ' ', {}) >= 0);
    std::string wrong = text;
    wrong.replace(wrong.find("1}"), 1, "x");
    CHECK(test::refused(format, tools, wrong) >= 0);
    CHECK(test::error_of(format, tools, wrong) != "none");
  }
}

TEST_CASE(
    "JsonCall in loose form reads calls without numbers; in Apertus's form the name is a key") {
  const JsonCall command = JsonCall::command_r7b();
  const ToolSet tools    = ToolSet::parse(R"([{"name": "f"}])");
  const std::string bare =
      "<|START_ACTION|>[{\"tool_name\": \"f\", \"parameters\": {}}]<|END_ACTION|>";
  CHECK(command.parse(bare, tools) == std::vector<ToolCall>{{"f"}});
  CHECK(test::refused(command, tools, bare) == -1);
  CHECK(test::refused(command, tools, bare, {}) >= 0);
  const std::string say = "<|START_RESPONSE|>Hm.<|END_RESPONSE|>";
  CHECK(test::refused(command, tools, say) == -1);
  CHECK(test::refused(command, tools, say + bare) == -1);
  CHECK(test::refused(command, tools, say + say) >= 0);
  const JsonCall apertus = JsonCall::apertus();
  for (const char* wrong : {"[{}]", "[{\"f\": 1}]", "[{\"f\": {}, \"g\": {}}]", "[\"f\"]"}) {
    CHECK(test::error_of(apertus, tools, "<|tools_prefix|>" + std::string(wrong)) ==
          "malformed_call byte 17");
  }
  CHECK(test::refused(apertus, tools, "<|tools_prefix|>[{\"h\": {}}]<|tools_suffix|>") == 19);
}
