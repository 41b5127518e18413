#include <algorithm>
#include <string>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/python_call.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;

namespace {

MaskCache bytes() {
  return test::byte_vocabulary();
}

const ToolSet& tools() {
  return test::two_tools();
}

// The byte of the first refusal, or -1.
template <class F>
int refused(const F& format, const std::string& text, ChoiceOptions options = {}) {
  const ToolCallFSM calls{bytes(), tools(), format, options};
  const auto refusal = calls.find_refusal(text);
  return refusal ? static_cast<int>(refusal->at) : -1;
}

}  // namespace

TEST_CASE("A wrong Python call is refused at the byte where it first becomes impossible") {
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

TEST_CASE("Tool choice decides between text and calls") {
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

TEST_CASE("Mode and tool follow the text, and calls are read back") {
  const ToolCallFSM calls{bytes(), tools(), JsonCall::hermes()};
  const auto at = [&](const std::string& text) {
    return *calls.advance_bytes(calls.initial(), text);
  };
  CHECK(calls.mode(at("hello <tool")) == ToolCallFSM::Mode::text);
  const std::string begin = "hello <tool_call>\n{\"name\": \"get";
  CHECK(calls.mode(at(begin)) == ToolCallFSM::Mode::tool);
  CHECK_FALSE(calls.find_tool(at(begin)));
  CHECK(calls.find_tool(at(begin + "\", \"arguments\": {")) == std::optional<std::size_t>(0));
  CHECK(calls.find_tool(at(begin + "_time\", ")) == std::optional<std::size_t>(1));
  CHECK(calls.forced(at(begin + "_")) == "time\"");
  const auto read = calls.parse(begin + "\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>");
  REQUIRE(read.size() == 1);
  CHECK(read[0] == ToolCall{"get", {{"city", "Oslo"}}});
  CHECK(calls.is_finished(*calls.advance(at("text"), 256)));
}

TEST_CASE("What conforms can be read: no number beyond double, a repeated free key") {
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
  CHECK(calls.parse("[f(o={'': 1, '': 3})]")[0].arguments.dump() == R"({"o":{"":3}})");
}

TEST_CASE("A single call has its leading keys supplied in their order, then any optional ones") {
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
  CHECK(calls.forced(at("[")) == "f(b=");
  CHECK(calls.forced(at("[f(b=5,")) == " a=");
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
  CHECK(json.forced(start) == ", \"arguments\": {\"b\": ");
}

TEST_CASE("Structural tokens write every call but its values") {
  const ToolCallFSM calls{bytes(), tools(), JsonCall::hermes()};
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
