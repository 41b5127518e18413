#include <algorithm>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;

namespace {

VocabularyIndex bytes() {
  return test::byte_vocabulary();
}

const ToolSet& documents() {
  return test::two_tools();
}

// The byte of the first refusal, or -1.
template <class F>
int refused(const F& format, const std::string& text, ChoiceOptions options = {}) {
  const ToolCallFSM calls{bytes(), documents(), format, options};
  const auto refusal = calls.find_refusal(text);
  return refusal ? static_cast<int>(refusal->at) : -1;
}

}  // namespace

TEST_CASE("ToolCallFSM::find_refusal gives the first impossible byte of a wrong Python call") {
  const PythonCall format;
  const ChoiceOptions required{.choice = ToolChoice::required};
  CHECK(refused(format, "[get(city='Oslo')]", required) == -1);
  CHECK(refused(format, "[get(days=2, city=\"Oslo\"), get_time()]", required) == -1);
  CHECK(refused(format, "[got(city='Oslo')]", required) == 2);          // unknown tool
  CHECK(refused(format, "[get(days=2)]", required) == 11);              // missing key
  CHECK(refused(format, "[get(town='Oslo')]", required) == 5);          // unknown key
  CHECK(refused(format, "[get(city='a', city='b')]", required) == 15);  // key given twice
  CHECK(refused(format, "[get(city=5)]", required) == 10);              // wrong type
  CHECK(refused(format, "[get(city='Oslo')", required) == 17);          // cut
  CHECK(refused(format, "no call", required) == 0);
  CHECK(refused(format, "[get(days=2, city='x')]", {.documented_order = true}) == 5);
  CHECK(refused(format, "[get_time(), get_time()]", {.parallel = false}) == 11);
}

TEST_CASE("ToolCallFSM::update_mask writes the mask of a state over that of another") {
  const ToolCallFSM calls{bytes(), documents(), PythonCall{}, {.choice = ToolChoice::required}};
  const auto begun = calls.advance_bytes(calls.initial(), "[get(");
  REQUIRE(begun);
  TokenMask expected(calls.vocabulary_size()), row(calls.vocabulary_size());
  calls.fill_mask(*begun, expected.words());
  calls.fill_mask(calls.initial(), row.words());
  REQUIRE(row != expected);
  calls.update_mask(calls.initial(), *begun, row.words());
  CHECK(row == expected);
}

TEST_CASE("ToolCallFSM allows text, calls or both as the tool choice says") {
  const JsonCall format  = JsonCall::hermes();
  const std::string call = "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>";
  const std::string other =
      "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"x\"}}\n</tool_call>";
  CHECK(refused(format, "plain text") == -1);
  CHECK(refused(format, "text with <tool_cal inside") == -1);
  CHECK(refused(format, "Let me see. " + call + '\n' + other) == -1);
  CHECK(refused(format, call + "more") == static_cast<int>(call.size()));
  CHECK(refused(format, call, {.choice = ToolChoice::none}) == 10);  // the trigger's last byte
  CHECK(refused(format, "text", {.choice = ToolChoice::required}) == 0);
  CHECK(refused(format, call, {.choice = ToolChoice::named, .name = "get_time"}) == -1);
  CHECK(refused(format, other, {.choice = ToolChoice::named, .name = "get_time"}) > 20);
  CHECK_THROWS_AS(refused(format, call, {.choice = ToolChoice::named, .name = "set"}), Error);
  CHECK(refused(PythonCall{}, "see [1]") == -1);
  CHECK(refused(PythonCall{}, "[1]") == 1);
}

TEST_CASE("ToolCallFSM in strict form refuses other text that the parser reads as calls") {
  const auto check = [](const auto& format, const std::string& text, int at) {
    CAPTURE(text);
    CHECK(format.parse(text, documents()).size() == 1);
    CHECK(refused(format, text) == at);
    CHECK(refused(format, text, {.whitespace = 40}) == -1);
    const ToolCallFSM calls{bytes(), documents(), format};
    CHECK(!calls.find_refusal(calls.write(calls.parse(text))));
  };
  check(DelimitedCall::kimi_k2(),
        "Hm. <|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>{}", 22);
  check(XmlCall::qwen3_coder(), "Hm. <function=get_time>\n</function>", 13);
}

TEST_CASE("ToolCallFSM::mode and find_tool follow the text, and parse reads the calls") {
  const ToolCallFSM calls{bytes(), documents(), JsonCall::hermes()};
  const auto at = [&](const std::string& text) {
    return *calls.advance_bytes(calls.initial(), text);
  };
  CHECK(calls.mode(at("hello <tool")) == ToolCallFSM::Mode::text);
  const std::string begin = "hello <tool_call>\n{\"name\": \"get";
  CHECK(calls.mode(at(begin)) == ToolCallFSM::Mode::tool);
  CHECK_FALSE(calls.find_tool(at(begin)));
  CHECK(calls.find_tool(at(begin + "\", \"arguments\": {")) == std::optional<std::size_t>(0));
  CHECK(calls.find_tool(at(begin + "_time\", ")) == std::optional<std::size_t>(1));
  CHECK(calls.jump_forward(at(begin + "_")) == "time\", \"arguments\": {}}\n</tool_call>");
  const ToolCallFSM loose{bytes(), documents(), JsonCall::hermes(), {.whitespace = 40}};
  CHECK(loose.jump_forward(*loose.advance_bytes(loose.initial(), begin + "_")) == "time\"");
  const auto read = calls.parse(begin + "\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>");
  REQUIRE(read.size() == 1);
  CHECK(read[0] == ToolCall{"get", {{"city", "Oslo"}}});
  CHECK(calls.is_finished(*calls.advance(at("text"), 256)));
}

TEST_CASE("ToolCallFSM accepts only numbers that parse can read, and repeated free keys") {
  const ToolSet free = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"x": {"type": "number"}, "n": {"type": "integer", "minimum": 3},
                   "o": {"type": "object", "additionalProperties": true}}}}])");
  const ToolCallFSM calls{bytes(), free, PythonCall{}, {.choice = ToolChoice::required}};
  const auto conforms = [&](const std::string& argument) {
    const std::string text = "[f(" + argument + ")]";
    const bool result      = !calls.find_refusal(text);
    if (result) REQUIRE(calls.parse(text).size() == 1);
    return result;
  };
  CHECK(conforms("x=" + std::string(199, '9') + "e99"));
  CHECK_FALSE(conforms("x=" + std::string(202, '9')));
  CHECK_FALSE(conforms("x=1e999"));
  CHECK(conforms("n=" + std::string(200, '9')));
  CHECK_FALSE(conforms("n=" + std::string(400, '9')));
  CHECK(conforms("o={'': 1, 'a': 2, '': 3}"));
  CHECK(calls.parse("[f(o={'': 1, '': 3})]")[0].arguments.text() == R"({"o":{"":3}})");
}

TEST_CASE("ToolCallFSM::find_argument counts properties that no value conforms to") {
  const ToolSet one = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": false, "b": {"type": "integer"}, "c": {"type": "integer"}},
    "allOf": [{"properties": {"d": {"type": "integer"}}}], "required": ["c"]}}])");
  REQUIRE(argument_names(one[0]) == std::vector<std::string>{"a", "b", "c"});
  const ToolCallFSM all{bytes(), one, PythonCall{}};
  for (const ToolCallFSM& calls : {all, all.single_call(0, {"c"})}) {
    const auto argument_at = [&](const std::string& text) {
      return calls.find_argument(*calls.advance_bytes(calls.initial(), text));
    };
    CHECK(argument_at("[f(c=") == 2);
    CHECK(argument_at("[f(c=1, b=") == 1);
    CHECK_FALSE(argument_at("[f(c=1, d="));
  }
}

TEST_CASE("ToolCallFSM::single_call forces the leading keys in order, then allows optional ones") {
  const ToolSet one = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"},
                   "d": {"type": "null"}}, "required": ["b", "a"]}}])");
  CHECK(argument_names(one[0]) == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(required_names(one[0]) == std::vector<std::string>{"a", "b"});
  const ToolCallFSM all{bytes(), one, PythonCall{}};
  const ToolCallFSM calls = all.single_call(0, {"b", "a"});
  const auto at           = [&](const std::string& text) {
    return *calls.advance_bytes(calls.initial(), text);
  };
  CHECK(calls.jump_forward(at("[")) == "f(b=");
  CHECK(calls.jump_forward(at("[f(b=5,")) == " a=");
  CHECK_FALSE(calls.find_argument(at("[f(")));
  CHECK(calls.find_argument(at("[f(b=")) == std::optional<std::size_t>(1));
  CHECK(calls.find_argument(at("[f(b=5")) == std::optional<std::size_t>(1));
  CHECK_FALSE(calls.find_argument(at("[f(b=5,")));
  CHECK(calls.find_argument(at("[f(b=5, a='x")) == std::optional<std::size_t>(0));
  CHECK_FALSE(calls.find_argument(at("[f(b=5, a='x'")));
  CHECK_FALSE(calls.find_refusal("[f(b=5, a='x', d=None, c=True)]"));
  CHECK(calls.find_refusal("[f(b=5, c=True, a='x')]")->at == 8);
  CHECK(calls.find_refusal("[f(b=5, a='x'), f(b=1, a='')]")->at == 14);
  CHECK_THROWS_AS(all.single_call(0, {"z"}), Error);
  CHECK_THROWS_AS(all.single_call(0, {"a", "a"}), Error);
  CHECK(calls.write(calls.parse("[f(b=5, a=\"x\")]")) == "[f(b=5, a='x')]");
  CHECK(calls.parse_value("'x'") == "x");

  const ToolCallFSM json = ToolCallFSM(bytes(), one, JsonCall::hermes()).single_call(0, {"b", "a"});
  const auto start       = *json.advance_bytes(json.initial(), "<tool_call>\n{\"name\": \"f\"");
  CHECK(json.find_tool(start) == std::optional<std::size_t>(0));
  CHECK(json.jump_forward(start) == ", \"arguments\": {\"b\": ");
}

TEST_CASE("ToolCallFSM::structural_tokens are those of a call without its string values") {
  const ToolCallFSM calls{bytes(), documents(), JsonCall::hermes()};
  const auto tokens = calls.structural_tokens();
  std::string letters;  // the vocabulary has single bytes alone
  for (const TokenId token : tokens) letters.push_back(static_cast<char>(token));
  CHECK(std::is_sorted(tokens.begin(), tokens.end()));
  for (const char byte :
       std::string("<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"city\"")) {
    CHECK(letters.find(byte) != std::string::npos);
  }
  for (const char byte : std::string("'[]-.0123456789")) {
    CHECK(letters.find(byte) != std::string::npos);
  }
  CHECK(letters.find('z') == std::string::npos);
}

TEST_CASE("ToolCallFSM with text_schema accepts a value of it or calls, and nothing beside them") {
  const auto schema = tooldecode::text::parse_json(
      R"({"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
          "required": ["city"], "additionalProperties": false})");
  const ToolCall call{.name = "get", .arguments = {{"city", "Oslo"}}};
  const auto check = [&](const auto& format) {
    const ToolCallFSM calls{bytes(), documents(), format, {.text_schema = schema}};
    INFO(calls.write(std::span(&call, 1)));
    const std::string written = calls.write(std::span(&call, 1));
    CHECK_FALSE(calls.find_refusal(written));
    CHECK(calls.parse(written) == std::vector{call});
    const std::string value = R"({"city": "Oslo", "n": 2})";
    CHECK_FALSE(calls.find_refusal(value));
    CHECK(calls.parse(value).empty());
    // What would open a call in free text is a string here.
    tooldecode::JsonValue holding{{"city", written + "\n" + std::string(format.trigger())}};
    CHECK_FALSE(calls.find_refusal(text::write_json(holding)));
    CHECK(calls.parse(text::write_json(holding)).empty());
    for (const std::string& text :
         {std::string("sunny"), std::string(), "Well: " + written, written + value, value + written,
          value + value, " " + value, std::string(R"({"n": 2, "city": "Oslo"})"),
          std::string(R"({"town": "Oslo"})"), std::string("{}")}) {
      INFO(text);
      CHECK(calls.find_refusal(text));
    }
    const auto in_value = calls.advance_bytes(calls.initial(), R"({"city": "Os)");
    REQUIRE(in_value);
    CHECK(calls.mode(*in_value) == ToolCallFSM::Mode::text);
    CHECK_FALSE(calls.find_tool(*in_value));
    const auto in_call =
        calls.advance_bytes(calls.initial(), written.substr(0, written.find("Os")));
    REQUIRE(in_call);
    CHECK(calls.mode(*in_call) == ToolCallFSM::Mode::tool);
    CHECK(calls.find_tool(*in_call) == documents().find("get"));

    const ToolCallFSM none{bytes(),
                           documents(),
                           format,
                           {.choice = ToolChoice::none, .whitespace = 0, .text_schema = schema}};
    CHECK_FALSE(none.find_refusal(text::write_json(holding)));
    CHECK(none.parse(text::write_json(holding)).empty());
    CHECK(none.parse(written).empty());
    CHECK(none.find_refusal(written));
    const ToolCallFSM required{
        bytes(),
        documents(),
        format,
        {.choice = ToolChoice::required, .whitespace = 0, .text_schema = schema}};
    CHECK_FALSE(required.find_refusal(written));
    CHECK(required.parse(written) == std::vector{call});
    CHECK(required.find_refusal(value));
    const ToolCallFSM thinking{bytes(),
                               documents(),
                               format,
                               {.whitespace  = 0,
                                .reasoning   = ReasoningDelimiters{"<think>", "</think>"},
                                .text_schema = schema}};
    CHECK_FALSE(thinking.find_refusal("<think>hm</think>" + value));
    CHECK(thinking.parse("<think>hm</think>" + value).empty());
    CHECK_FALSE(thinking.find_refusal("<think>hm</think>" + written));
    CHECK(thinking.parse("<think>hm</think>" + written) == std::vector{call});
    CHECK(thinking.find_refusal("<think>hm</think>sunny"));
    CHECK_FALSE(thinking.find_refusal("<think>hm</think>\n\n" + value));
    CHECK(thinking.parse("<think>hm</think>\n\n" + value).empty());
    CHECK(thinking.parse("<think>hm</think>\n\n" + written) == std::vector{call});
    CHECK(thinking.find_refusal("<think>hm</think>\n\n\n" + value));
    CHECK(thinking.find_refusal("\n" + value));
  };
  check(PythonCall{});
  check(JsonCall::hermes());
  check(JsonCall::mistral());
  check(DelimitedCall::deepseek_v3());
  check(DelimitedCall::kimi_k2());
  check(XmlCall::qwen3_coder());
  check(XmlCall::glm());
}

TEST_CASE("ToolCallFSM refuses a text_schema that cannot be enforced or told from calls") {
  const auto refusal = [](const auto& format, const char* schema, bool with_tools = true) {
    try {
      const ToolCallFSM calls{bytes(),
                              with_tools ? documents() : ToolSet{},
                              format,
                              {.text_schema = tooldecode::text::parse_json(schema)}};
      return std::string();
    } catch (const Error& error) {
      return std::string(name(error.code())) + ' ' + error.where();
    }
  };
  CHECK(refusal(PythonCall{}, R"({"type": "array"})") == "invalid_option text_schema");
  CHECK(refusal(PythonCall{}, "true") == "invalid_option text_schema");
  CHECK(refusal(PythonCall{}, R"({"type": "array"})", false).empty());
  CHECK(refusal(PythonCall{}, R"({"type": "object"})").empty());
  CHECK(refusal(JsonCall::bare(), R"({"type": "object"})") == "invalid_option text_schema");
  CHECK(refusal(JsonCall::bare(), R"({"type": "array"})").empty());
  CHECK(refusal(JsonCall::mistral(), R"({"type": "array"})").empty());
  CHECK(refusal(HarmonyCall{}, R"({"type": "object"})") == "invalid_option text_schema");
  CHECK(refusal(PythonCall{}, R"({"properties": {"a": {"type": "int"}}})") ==
        "malformed_schema text_schema/properties/a/type");
  CHECK(refusal(PythonCall{}, R"({"properties": {"a": {"uniqueItems": true}}})", false) ==
        "unsupported_keyword text_schema/properties/a/uniqueItems");
}

namespace {

// An answer is refused exactly where it has more calls than are allowed.
template <class F>
void check_max_calls(const F& format) {
  const ToolCallFSM any(bytes(), documents(), format, {.choice = ToolChoice::required});
  for (std::uint32_t max = 1; max <= 3; ++max) {
    const ToolCallFSM some(bytes(), documents(), format,
                           {.choice = ToolChoice::required, .max_calls = max});
    for (std::size_t count = 1; count <= 4; ++count) {
      INFO("at most " << max << ", " << count << " calls");
      const std::vector<ToolCall> calls(count, ToolCall{"get", {{"city", "Oslo"}}});
      const std::string text = any.write(calls);
      REQUIRE_FALSE(any.find_refusal(text));
      CHECK(some.find_refusal(text).has_value() == (count > max));
    }
  }
  CHECK_THROWS_WITH(
      (ToolCallFSM(bytes(), documents(), format, {.max_calls = 0})),
      test::contains("max_calls 0: must be 1 or more; for no call the choice is none"));
}

}  // namespace

TEST_CASE("ToolCallFSM with max_calls refuses an answer exactly where it has more calls") {
  check_max_calls(PythonCall{});
  check_max_calls(JsonCall::hermes());
  check_max_calls(JsonCall::bare_list());
  check_max_calls(JsonCall::mistral());
  check_max_calls(DelimitedCall::deepseek_v3());
  check_max_calls(XmlCall::qwen3_coder());
  check_max_calls(HarmonyCall{});
}
