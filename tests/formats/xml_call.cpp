#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/format_checks.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

const XmlCall qwen = XmlCall::qwen3_coder();
const XmlCall glm  = XmlCall::glm();

const ToolSet& documents() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "search", "parameters": {"type": "object", "properties": {
      "query": {"type": "string"}, "limit": {"type": "integer"}, "tags": {"type": "array"},
      "after": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "any": {"type": ["string", "integer"]}},
      "required": ["query"], "additionalProperties": false}},
    {"name": "now"}])");
  return set;
}

const std::vector<ToolCall>& two() {
  static const std::vector<ToolCall> calls{
      {"search", {{"query", "a \"b\"\n<c>"}, {"limit", 5}, {"tags", {"x", 1}}}}, {"now"}};
  return calls;
}

int refused(const XmlCall& format, const std::string& text,
            const ChoiceOptions& options = test::loose()) {
  return test::refused(format, documents(), text, options);
}

Json argument(const XmlCall& format, const std::string& text, const ToolSet& set = documents()) {
  const auto calls = format.parse(text, set);
  REQUIRE(calls.size() == 1);
  REQUIRE(calls[0].arguments.size() == 1);
  return *calls[0].arguments.begin();
}

std::string error_of(const XmlCall& format, std::string_view text) {
  return test::error_of(format, documents(), text);
}

}  // namespace

TEST_CASE("XmlCall::parse reads Python's True, False and None where no string may stand") {
  const ToolSet set = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"flag": {"type": ["boolean", "null"]}, "text": {"type": "string"}}}}])");
  const auto call   = [](const std::string& key, const std::string& value) {
    return "<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  CHECK(argument(qwen, call("flag", "True"), set) == true);
  CHECK(argument(qwen, call("flag", "False"), set) == false);
  CHECK(argument(qwen, call("flag", "None"), set) == nullptr);
  CHECK(argument(qwen, call("text", "True"), set) == "True");
  CHECK(test::error_of(qwen, set, call("flag", "Truer")) != "none");
}

TEST_CASE("XmlCall::qwen3_coder writes and reads calls as Qwen3-Coder's template does") {
  const std::string text =
      "<tool_call>\n<function=search>\n<parameter=query>\na \"b\"\n<c>\n</parameter>\n"
      "<parameter=limit>\n5\n</parameter>\n<parameter=tags>\n[\"x\", 1]\n</parameter>\n"
      "</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>";
  CHECK(qwen.write(two(), documents()) == text);
  CHECK(qwen.write(two()) == text);
  CHECK(qwen.parse(text, documents()) == two());
  CHECK(qwen.parse(text, {}) == two());
  CHECK(refused(qwen, "Let me see.\n\n" + text + "\n") == -1);
  CHECK(qwen.parse("Let me see.\n\n" + text + "\n", documents()) == two());
  CHECK(qwen.parse("<tool_call><function=search><parameter=query>a \"b\"\n<c></parameter>"
                   "<parameter=limit>5</parameter> <parameter=tags> [\"x\",1] </parameter>"
                   "</function></tool_call><tool_call><function=now></function></tool_call>",
                   documents()) == two());
  CHECK(qwen.parse("no call", documents()).empty());
  CHECK(qwen.write({}).empty());
}

TEST_CASE("XmlCall of each family writes calls in its template's white space alone") {
  const std::string_view query = "a \"b\"\n<c>";
  const auto text_of           = [&](std::string text) {
    for (std::size_t at = text.find("$Q"); at != std::string::npos; at = text.find("$Q")) {
      text.replace(at, 2, query);
    }
    return text;
  };
  const std::vector<std::pair<XmlCall, std::string>> cases{
      {XmlCall::glm_4_7(),
       "<tool_call>search<arg_key>query</arg_key><arg_value>$Q</arg_value><arg_key>limit</arg_key>"
       "<arg_value>5</arg_value><arg_key>tags</arg_key><arg_value>[\"x\", 1]</arg_value>"
       "</tool_call><tool_call>now</tool_call>"},
      {XmlCall::mimo(),
       "<tool_call><function=search><parameter=query>$Q</parameter><parameter=limit>5</parameter>"
       "<parameter=tags>[\"x\", 1]</parameter></function></tool_call>"
       "<tool_call><function=now></function></tool_call>"},
      {XmlCall::seed_oss(),
       "<seed:tool_call>\n<function=search>\n<parameter=query>$Q</parameter>\n"
       "<parameter=limit>5</parameter>\n<parameter=tags>[\"x\", 1]</parameter>\n</function>\n"
       "</seed:tool_call>\n<seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>"},
      {XmlCall::minimax_m2(),
       "<minimax:tool_call>\n<invoke name=\"search\">\n<parameter name=\"query\">$Q</parameter>\n"
       "<parameter name=\"limit\">5</parameter>\n<parameter name=\"tags\">[\"x\", 1]</parameter>\n"
       "</invoke>\n<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>"},
      {XmlCall::dots(),
       "<dots_function_call>\n<invoke name=\"search\">\n<parameter name=\"query\">$Q</parameter>\n"
       "<parameter name=\"limit\">5</parameter>\n<parameter name=\"tags\">[\"x\", 1]</parameter>\n"
       "</invoke>\n<invoke name=\"now\">\n</invoke>\n</dots_function_call>"},
      {XmlCall::step_3(),
       "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
       "name=\"search\">\n<steptml:parameter name=\"query\">$Q</steptml:parameter>\n"
       "<steptml:parameter name=\"limit\">5</steptml:parameter>\n"
       "<steptml:parameter name=\"tags\">[\"x\", 1]</steptml:parameter>\n"
       "</steptml:invoke><｜tool_call_end｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
       "<steptml:invoke name=\"now\">\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"},
      {XmlCall::iquest_q1(),
       "<iquest_tool_call>search<arg_key>query</arg_key><arg_value>$Q</arg_value>"
       "<arg_key>limit</arg_key><arg_value>5</arg_value><arg_key>tags</arg_key>"
       "<arg_value>[\"x\", 1]</arg_value></iquest_tool_call>"
       "<iquest_tool_call>now</iquest_tool_call>"},
      {XmlCall::k2_horizon(),
       "<ifm|tool_calls>\n<ifm|tool_call>search\n<ifm|arg_key>query</ifm|arg_key>\n"
       "<ifm|arg_value>$Q</ifm|arg_value>\n<ifm|arg_key>limit</ifm|arg_key>\n"
       "<ifm|arg_value>5</ifm|arg_value>\n<ifm|arg_key>tags</ifm|arg_key>\n"
       "<ifm|arg_value>[\"x\", 1]</ifm|arg_value>\n</ifm|tool_call>\n"
       "<ifm|tool_call>now\n</ifm|tool_call>\n</ifm|tool_calls>"},
      {XmlCall::hunyuan_3(),
       "<tool_calls>\n<tool_call>search<tool_sep>\n<arg_key>query</arg_key>\n"
       "<arg_value>$Q</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>5</arg_value>\n"
       "<arg_key>tags</arg_key>\n<arg_value>[\"x\", 1]</arg_value>\n</tool_call>\n"
       "<tool_call>now<tool_sep>\n</tool_call>\n</tool_calls>"},
      {XmlCall::hunyuan_4(":6124c78e"),
       "<tool_calls:6124c78e><tool_call:6124c78e>search<arg_key:6124c78e>query</arg_key:6124c78e>"
       "<arg_value:6124c78e>$Q</arg_value:6124c78e><arg_key:6124c78e>limit</arg_key:6124c78e>"
       "<arg_value:6124c78e>5</arg_value:6124c78e><arg_key:6124c78e>tags</arg_key:6124c78e>"
       "<arg_value:6124c78e>[\"x\", 1]</arg_value:6124c78e></tool_call:6124c78e>"
       "<tool_call:6124c78e>now</tool_call:6124c78e></tool_calls:6124c78e>"},
      {XmlCall::minimax_m3(),
       "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"search\">"
       "]<]minimax[>[<query>$Q]<]minimax[>[</query>]<]minimax[>[<limit>5]<]minimax[>[</limit>"
       "]<]minimax[>[<tags>]<]minimax[>[<item>x]<]minimax[>[</item>"
       "]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</tags>]<]minimax[>[</invoke>\n"
       "]<]minimax[>[<invoke name=\"now\">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"},
      {XmlCall::deepseek_v4_1(),
       "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"search\">\n"
       "<｜DSML｜ parameter name=\"query\" string=\"true\">$Q</｜DSML｜ parameter>\n"
       "<｜DSML｜ parameter name=\"limit\" string=\"false\">5</｜DSML｜ parameter>\n"
       "<｜DSML｜ parameter name=\"tags\" string=\"false\">[\"x\", 1]</｜DSML｜ parameter>\n"
       "</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"now\">\n</｜DSML｜ invoke>\n"
       "</｜DSML｜ calls>"},
      {XmlCall::gigachat_3_5(),
       "<｜GCML｜tool_calls>\n<｜GCML｜invoke name=\"search\">\n"
       "<｜GCML｜parameter name=\"query\" string=\"true\">$Q</｜GCML｜parameter>\n"
       "<｜GCML｜parameter name=\"limit\" string=\"false\">5</｜GCML｜parameter>\n"
       "<｜GCML｜parameter name=\"tags\" string=\"false\">[\"x\", 1]</｜GCML｜parameter>\n"
       "</｜GCML｜invoke>\n<｜GCML｜invoke name=\"now\">\n</｜GCML｜invoke>\n"
       "</｜GCML｜tool_calls>"},
      {XmlCall::minicpm5(),
       "<function name=\"search\"><param name=\"query\">$Q</param><param name=\"limit\">5</param>"
       "<param name=\"tags\">[\"x\", 1]</param></function><function name=\"now\"></function>"},
      {XmlCall::deepseek_v3_2(),
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"search\">\n"
       "<｜DSML｜parameter name=\"query\" string=\"true\">$Q</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"limit\" string=\"false\">5</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"tags\" string=\"false\">[\"x\", 1]</｜DSML｜parameter>\n"
       "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n"
       "</｜DSML｜function_calls>"},
      {XmlCall::kimi_k3(),
       "<|open|>tools<|sep|><|open|>call tool=\"search\" index=\"1\"<|sep|>"
       "<|open|>argument key=\"query\" type=\"string\"<|sep|>$Q<|close|>argument<|sep|>"
       "<|open|>argument key=\"limit\" type=\"number\"<|sep|>5<|close|>argument<|sep|>"
       "<|open|>argument key=\"tags\" type=\"array\"<|sep|>[\"x\", 1]<|close|>argument<|sep|>"
       "<|close|>call<|sep|><|open|>call tool=\"now\" index=\"2\"<|sep|><|close|>call<|sep|>"
       "<|close|>tools<|sep|><|close|>message<|sep|>"},
      {XmlCall::gemma_4(),
       "<|tool_call>call:search{query:<|\"|>$Q<|\"|>,limit:5,tags:[<|\"|>x<|\"|>,1]}<tool_call|>"
       "<|tool_call>call:now{}<tool_call|>"},
      {XmlCall::function_gemma(),
       "<start_function_call>call:search{query:<escape>$Q<escape>,limit:5,tags:[<escape>x<escape>,1]}"
       "<end_function_call><start_function_call>call:now{}<end_function_call>"},
      {XmlCall::cohere(),
       "<cofl:tool_calls><cofl:tool_call id=\"0\" name=\"search\">"
       "<cofl:value name=\"query\" type=\"raw\">$Q</cofl:value>"
       "<cofl:value name=\"limit\" type=\"json\">5</cofl:value>"
       "<cofl:value name=\"tags\" type=\"list\"><cofl:value type=\"raw\">x</cofl:value>"
       "<cofl:value type=\"json\">1</cofl:value></cofl:value></cofl:tool_call>"
       "<cofl:tool_call id=\"1\" name=\"now\"></cofl:tool_call></cofl:tool_calls>"},
  };
  for (const auto& [format, written] : cases) {
    const std::string text = text_of(written);
    CAPTURE(text);
    CHECK(format.write(two(), documents()) == text);
    CHECK(format.parse(text, documents()) == two());
    CHECK(format.parse("Let me see. " + text + "\n", documents()) == two());
    CHECK(refused(format, text, {}) == -1);
    CHECK(refused(format, "Let me see. " + text, {}) == -1);
    CHECK(refused(format, text) == -1);
    CHECK(refused(format, text + " ", {}) == static_cast<int>(text.size()));
    CHECK(refused(format, text + " x") >= 0);
    CHECK(format.write({}).empty());
    CHECK(format.parse("no call", documents()).empty());
    const auto begin =
        text.find(format.section_begin.empty() ? format.begin : format.section_begin);
    CHECK(begin == 0);
    CHECK(error_of(format, text.substr(0, text.size() - 1)) != "none");
  }
}

TEST_CASE("XmlCall::minimax_m3 tells strings from other values by the tool's document") {
  const XmlCall format = XmlCall::minimax_m3();
  const ToolSet set    = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {
      "text": {"type": "string"}, "id": {"type": ["string", "integer"]},
      "maybe": {"type": ["string", "null"]}, "list": {"type": "array", "items": {"type": "string"}},
      "either": {"type": ["string", "array"], "items": {"type": "integer"}},
      "place": {"type": "object", "properties": {
        "zip": {"type": "string"}, "x": {"type": "number"}, "on": {"type": "boolean"},
        "empty": {"type": "object", "properties": {}},
        "deep": {"type": "array", "items": {"type": "object", "properties": {
          "n": {"type": "string"}, "m": {"type": "integer"}}}}}}}}}])");
  const std::string ns = "]<]minimax[>[";
  const auto element   = [&](const std::string& key, const std::string& value) {
    return ns + "<" + key + ">" + value + ns + "</" + key + ">";
  };
  const auto call = [&](const std::string& arguments) {
    return ns + "<tool_call>\n" + ns + "<invoke name=\"f\">" + arguments + ns + "</invoke>\n" + ns +
           "</tool_call>";
  };
  const VocabularyIndex index(test::byte_vocabulary());
  const ToolCallFSM machine(index, set, format, {.choice = ToolChoice::required});
  struct Case {
    std::string arguments;
    Json value;
  };
  const std::string deep = element("item", element("n", "7") + element("m", "7")) +
                           element("item", element("n", " null"));
  for (const auto& [written, value] : std::vector<Case>{
           {element("text", "7"), {{"text", "7"}}},
           {element("text", ""), {{"text", ""}}},
           {element("text", " true\n"), {{"text", " true\n"}}},
           {element("id", "7"), {{"id", 7}}},
           {element("id", "7a"), {{"id", "7a"}}},
           {element("maybe", "null"), {{"maybe", nullptr}}},
           {element("maybe", "nil"), {{"maybe", "nil"}}},
           {element("list", ""), {{"list", Json::array()}}},
           {element("list", element("item", "1") + element("item", "")),
            {{"list", Json::array({"1", ""})}}},
           {element("either", ""), {{"either", ""}}},
           {element("either", element("item", "1")), {{"either", Json::array({1})}}},
           {element("place", ""), {{"place", Json::object()}}},
           {element("place", element("zip", "0150") + element("x", "1.5") + element("on", "true") +
                                 element("empty", "") + element("deep", deep)),
            {{"place",
              {{"zip", "0150"},
               {"x", 1.5},
               {"on", true},
               {"empty", Json::object()},
               {"deep", Json::array({Json{{"n", "7"}, {"m", 7}}, Json{{"n", " null"}}})}}}}}}) {
    CAPTURE(written);
    const std::vector calls{ToolCall{"f", value}};
    CHECK(format.write(calls, set) == call(written));
    CHECK(format.parse(call(written), set) == calls);
    CHECK(machine.advance_bytes(machine.initial(), call(written)).has_value());
  }
  // Texts that are read as another value than the one that is meant, or as none.
  for (const Json& value : {Json{{"id", "7"}}, Json{{"id", " -1e5\n"}}, Json{{"maybe", "null"}},
                            Json{{"either", Json::array()}}, Json{{"text", "a" + ns}},
                            Json{{"place", {{"invoke", 1}}}}}) {
    CHECK_THROWS_AS(format.write(std::vector{ToolCall{"f", value}}, set), Error);
  }
  for (const std::string& written :
       {element("text", "a" + ns),
        element("list", element("item", "a") + element("item", "b") + "c"),
        element("place", element("x", "\"1\"")), element("place", element("on", "True")),
        element("place", element("on", "true") + element("on", "true")),
        ns + "<text>a" + ns + "</id>", ns + "<text>a" + ns + "</text "}) {
    CAPTURE(written);
    CHECK_FALSE(machine.advance_bytes(machine.initial(), call(written)).has_value());
  }
  // A key that readers take for the end of a call, and keys that nothing lists.
  for (const char* properties :
       {R"({"invoke": {"type": "string"}})", R"({"o": {"type": "object", "properties": {
          "tool_call": {"type": "string"}}}})",
        R"({"/a": {"type": "string"}})",
        R"({"o": {"type": "object", "additionalProperties": {"type": "string"}}})",
        R"({"o": {"type": ["array", "object"], "properties": {"item": {"type": "string"}}}})"}) {
    CAPTURE(properties);
    const ToolSet one =
        ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", "properties": )" +
                       std::string(properties) + "}}]");
    CHECK_THROWS_AS(ToolCallFSM(index, one, format, {.choice = ToolChoice::required}), Error);
  }
}

TEST_CASE("XmlCall::minimax_m3 of a tool that is not strict has the structure of its document") {
  const ToolSet set    = ToolSet::parse(R"([{"name": "f", "strict": false, "parameters": {
    "type": "object", "properties": {
      "list": {"type": "array", "items": {"type": "string"}},
      "place": {"type": "object", "properties": {"zip": {"type": "string"}}},
      "n": {"type": "integer"}}}},
    {"name": "g", "strict": false, "parameters": {"type": "object", "properties": {
      "map": {"type": "object", "additionalProperties": {"type": "string"}},
      "text": {"type": "string"}}}}])");
  const XmlCall format = XmlCall::minimax_m3();
  const VocabularyIndex index(test::byte_vocabulary());
  const ToolCallFSM machine(index, set, format, {.choice = ToolChoice::required});
  for (const ToolCall& call :
       {ToolCall{"f", {{"list", Json::array({"1", "b"})}, {"place", {{"zip", "0150"}}}, {"n", 7}}},
        ToolCall{"g", {{"text", "7"}}}}) {
    const std::vector calls{call};
    const std::string text = format.write(calls, set);
    CAPTURE(text);
    CHECK(machine.advance_bytes(machine.initial(), text).has_value());
    CHECK(machine.parse(text) == calls);
  }
}

TEST_CASE("XmlCall::minimax_m3 reads an alternative's values as all alternatives have them") {
  const ToolSet set    = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"o": {"oneOf": [
      {"type": "object", "properties": {"k": {"const": "s"}, "v": {"type": "string"}},
       "required": ["k", "v"], "additionalProperties": false},
      {"type": "object", "properties": {"k": {"const": "n"}, "v": {"type": "integer"}},
       "required": ["k", "v"], "additionalProperties": false}]}}}}])");
  const XmlCall format = XmlCall::minimax_m3();
  const VocabularyIndex index(test::byte_vocabulary());
  const ToolCallFSM machine(index, set, format, {.choice = ToolChoice::required});
  const auto call = [](const std::string& kind, const std::string& value) {
    const std::string ns = "]<]minimax[>[";
    return ns + "<tool_call>\n" + ns + "<invoke name=\"f\">" + ns + "<o>" + ns + "<k>" + kind + ns +
           "</k>" + ns + "<v>" + value + ns + "</v>" + ns + "</o>" + ns + "</invoke>\n" + ns +
           "</tool_call>";
  };
  const auto allows = [&](const std::string& text) {
    return machine.advance_bytes(machine.initial(), text).has_value();
  };
  CHECK(allows(call("n", "7")));
  CHECK(allows(call("s", "7a")));
  CHECK_FALSE(allows(call("s", "7")));  // reads as the integer, which has another `k`
  CHECK_FALSE(allows(call("n", "7a")));
  const Json seven{{"o", {{"k", "n"}, {"v", 7}}}};
  CHECK(format.parse(call("n", "7"), set) == std::vector{ToolCall{"f", seven}});
}

TEST_CASE("XmlCall in a style with kinds reads values back with their types") {
  const ToolSet set = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"any": {}, "either": {"type": ["string", "integer"]},
                   "inner": {"type": "object", "properties": {"x": {"type": "string"}}}}}}])");
  for (const XmlCall& format :
       {XmlCall::deepseek_v3_2(), XmlCall::kimi_k3(), XmlCall::gemma_4(), XmlCall::cohere()}) {
    for (const Json& value : {Json("5"), Json(5), Json(-2.5), Json(true), Json(nullptr),
                              Json("null"), Json::array(), Json::array({1, "1", Json::array()}),
                              Json::object(), Json{{"key", Json::array({Json{{"b", "c"}}})}}}) {
      const std::vector<ToolCall> calls{{"f", {{"any", value}}}};
      const std::string text = format.write(calls, set);
      CAPTURE(text);
      CHECK(format.parse(text, set) == calls);
      CHECK(test::refused(format, set, text, {}) == -1);
    }
    for (const Json& value : {Json("5"), Json(5)}) {
      const std::vector<ToolCall> calls{{"f", {{"either", value}, {"inner", {{"x", "7"}}}}}};
      const std::string text = format.write(calls, set);
      CAPTURE(text);
      CHECK(format.parse(text, set) == calls);
      CHECK(test::refused(format, set, text, {}) == -1);
    }
    const std::string wrong = format.write(std::vector<ToolCall>{{"f", {{"either", true}}}}, set);
    CHECK(test::refused(format, set, wrong, {}) >= 0);
  }
}

TEST_CASE("XmlCall::kimi_k3 in loose form reads a call with any number") {
  const XmlCall format = XmlCall::kimi_k3();
  const auto call      = [](const char* index) {
    return "<|open|>tools<|sep|><|open|>call tool=\"now\" index=\"" + std::string(index) +
           "\"<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>";
  };
  CHECK(format.parse(call("17"), documents()) == std::vector<ToolCall>{{"now"}});
  CHECK(refused(format, call("17")) == -1);
  CHECK(refused(format, call("")) >= 0);
  CHECK(error_of(format, call("x")) != "none");
  CHECK(error_of(format, call("")) != "none");
}

TEST_CASE("XmlCall::kimi_k3 takes text in response marks as text, before calls and alone") {
  const XmlCall format    = XmlCall::kimi_k3();
  const std::string say   = "<|open|>response<|sep|>Hm.<|close|>response<|sep|>";
  const std::string empty = "<|open|>response<|sep|><|close|>response<|sep|>";
  const std::string call  = format.write(std::vector<ToolCall>{{"now"}});
  CHECK(refused(format, say) == -1);
  CHECK(refused(format, say + "<|close|>message<|sep|>") == -1);
  CHECK(refused(format, say + call) == -1);
  CHECK(refused(format, "Hm." + call) == -1);
  CHECK(refused(format, say + say) >= 0);
  CHECK(refused(format, "Hm. <|open|>response<|sep|>") >= 0);
  CHECK(format.parse(say + call, documents()) == std::vector<ToolCall>{{"now"}});
  ChoiceOptions required = test::loose();
  required.choice        = ToolChoice::required;
  CHECK(refused(format, empty + call, required) == -1);
  CHECK(refused(format, say + call, required) >= 0);
  ChoiceOptions none = test::loose();
  none.choice        = ToolChoice::none;
  CHECK(refused(format, say + "<|close|>message<|sep|>", none) == -1);
  CHECK(refused(format, say + call, none) >= 0);
}

TEST_CASE("XmlCall::deepseek_v4 lets a call end a reasoning block that nothing else ends") {
  const XmlCall format   = XmlCall::deepseek_v4();
  const std::string call = format.write(std::vector<ToolCall>{{"now"}});
  ChoiceOptions options  = test::loose();
  options.reasoning      = formats::ReasoningDelimiters{.begin = ""};
  CHECK(refused(format, "Hm.\n\n" + call, options) == -1);
  CHECK(refused(format, "Hm.</think>\n\n" + call, options) == -1);
  CHECK(refused(XmlCall::deepseek_v3_2(),
                "Hm.\n\n" + XmlCall::deepseek_v3_2().write(std::vector<ToolCall>{{"now"}}),
                options) >= 0);
}

TEST_CASE("XmlCall::qwen3_coder in loose form may omit what opens a call") {
  const std::string call = "<function=now>\n</function>";
  const std::string end  = "\n</tool_call>";
  const ToolCall now{"now"};
  for (const std::string& text :
       {call, call + end, "So. " + call, call + "\n" + call,
        call + end + "\n<tool_call>" + call + end, "<tool_call>" + call + end + call + "\n"}) {
    INFO(text);
    CHECK(refused(qwen, text) == -1);
    CHECK_FALSE(qwen.parse(text, documents()).empty());
    for (const ToolCall& read : qwen.parse(text, documents())) CHECK(read == now);
  }
  CHECK(refused(qwen, "<function=find>") == 10);
  CHECK(refused(qwen, "<function=search>\n</function>") == 19);
  CHECK(refused(qwen, "<tool_call>" + call) == static_cast<int>(11 + call.size()));
  CHECK(refused(qwen, "<function=", test::loose({.choice = ToolChoice::none})) == 9);
  CHECK(refused(qwen, call, test::loose({.choice = ToolChoice::required})) == -1);
  CHECK(refused(qwen, call, {.choice = ToolChoice::required}) == 1);
  CHECK(refused(qwen, call + call, test::loose({.parallel = false})) ==
        static_cast<int>(call.size()) + 1);
  CHECK(refused(glm, "<function=find>") == -1);
}

TEST_CASE("XmlCall reads tool names and keys back unchanged, or refuses the tool with its place") {
  const auto set = [](const std::string& name, const std::string& key) {
    return ToolSet::from_json(Json::array(
        {{{"name", name},
          {"parameters", {{"type", "object"}, {"properties", {{key, {{"type", "integer"}}}}}}}}}));
  };
  const auto refusal = [&](const XmlCall& format, const std::string& name, const std::string& key) {
    try {
      const ToolSet tools    = set(name, key);
      const std::string text = format.write(std::vector<ToolCall>{{name, {{key, 1}}}}, tools);
      const int at           = test::refused(format, tools, text);
      CHECK(at == -1);
      CHECK(format.parse(text, tools) == std::vector<ToolCall>{{name, {{key, 1}}}});
      return std::string("none");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unsupported_name);
      return error.where();
    }
  };
  CHECK(refusal(qwen, "f>", "a") == "#/0/name");
  CHECK(refusal(qwen, "f", "x>") == "#/0/parameters/properties/x>");
  CHECK(refusal(qwen, "f", "") == "#/0/parameters/properties/");
  CHECK(refusal(qwen, " f ", "date\t") == "none");
  CHECK(refusal(glm, " f", "a") == "#/0/name");
  CHECK(refusal(glm, "f", " date\t\n") == "none");
  CHECK(refusal(glm, "f>", "x>") == "none");
  CHECK(refusal(glm, "f<arg_key>", "x") == "#/0/name");
}

TEST_CASE("XmlCall::glm writes and reads calls as GLM's template does") {
  const std::string text =
      "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>a \"b\"\n<c></arg_value>\n"
      "<arg_key>limit</arg_key>\n<arg_value>5</arg_value>\n"
      "<arg_key>tags</arg_key>\n<arg_value>[\"x\", 1]</arg_value>\n</tool_call>\n"
      "<tool_call>now\n</tool_call>";
  CHECK(glm.write(two(), documents()) == text);
  CHECK(glm.parse(text, documents()) == two());
  CHECK(glm.parse(text, {}) == two());
  CHECK(refused(glm, "Let me see.\n" + text) == -1);
  // GLM-4.6 may leave out the ends of lines
  CHECK(glm.parse("<tool_call>search<arg_key>query</arg_key><arg_value> x </arg_value></tool_call>",
                  documents()) == std::vector<ToolCall>{{"search", {{"query", " x "}}}});
}

TEST_CASE("XmlCall::parse reads a value as a string where the document says so") {
  const auto written = [](const std::string& key, const std::string& value) {
    return "<tool_call>\n<function=search>\n<parameter=" + key + ">\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  CHECK(argument(qwen, written("query", "5")) == "5");
  CHECK(argument(qwen, written("query", "null")) == "null");
  CHECK(argument(qwen, written("query", "")) == "");
  CHECK(argument(qwen, written("query", "\n\"x\"\n")) == "\n\"x\"\n");
  CHECK(argument(qwen, written("after", "null")) == nullptr);
  CHECK(argument(qwen, written("after", "nullify")) == "nullify");
  CHECK(argument(qwen, written("any", "5")) == 5);
  CHECK(argument(qwen, written("any", "\"5\"")) == "5");
  CHECK(argument(qwen, written("any", "five")) == "five");  // read, but never written
  CHECK(argument(qwen, written("limit", " 5 ")) == 5);
  CHECK(argument(qwen, written("query", "5"), {}) == 5);  // the key is not documented
  CHECK(argument(qwen, written("query", "x"), {}) == "x");
  const std::vector<ToolCall> call{{"search", {{"any", "5"}, {"after", "5"}}}};
  const std::string text = qwen.write(call, documents());
  CHECK(text.find(">\n\"5\"\n<") != std::string::npos);
  CHECK(text.find(">\n5\n<") != std::string::npos);
  CHECK(qwen.parse(text, documents()) == call);
}

TEST_CASE("XmlCall over a wrong call refuses the first impossible byte") {
  const std::string begin = "<tool_call>\n<function=search>\n";
  const std::string query = "<parameter=query>\nx\n</parameter>\n";
  const std::string end   = "</function>\n</tool_call>";
  const auto at           = [&](const std::string& part) {
    return refused(qwen, begin + part + end) - static_cast<int>(begin.size());
  };
  const int accepted = -1 - static_cast<int>(begin.size());
  CHECK(at(query) == accepted);
  CHECK(at("<parameter=any>\n7\n</parameter>\n" + query) == accepted);
  CHECK(at("") == 1);                        // a required argument is missing
  CHECK(at(query + query) == 44);            // a repeated key: "<parameter=" fits no other
  CHECK(at("<parameter=limit>\nx") == 18);   // a wrong type
  CHECK(at("<parameter=town>\n") == 12);     // an unknown key
  CHECK(at("<parameter=any>\nfive") == 16);  // a string needs its quotes
  CHECK(at(query + "<parameter=limit>\n5</parameter>") == 52);
  CHECK(refused(qwen, "<tool_call>\n<function=find>") == 22);
  CHECK(refused(qwen, begin + query) == static_cast<int>((begin + query).size()));
  CHECK(refused(qwen, begin + query + end + begin, {.parallel = false}) ==
        static_cast<int>((begin + query + end).size()));
  CHECK(refused(qwen, "<tool_call> <function=now>\n</function>\n</tool_call>", {}) == 11);
}

TEST_CASE("XmlCall with leading_keys accepts these arguments first and in order") {
  const ChoiceOptions options{
      .choice = ToolChoice::named, .name = "search", .leading_keys = {"limit", "query"}};
  const auto write = [](const Json& arguments) {
    return qwen.write(std::vector<ToolCall>{{"search", arguments}}, documents());
  };
  CHECK(refused(qwen, write({{"limit", 1}, {"query", "x"}, {"after", nullptr}}), options) == -1);
  CHECK(refused(qwen, write({{"query", "x"}, {"limit", 1}}), options) > 0);
  CHECK_THROWS_WITH(
      refused(qwen, "", {.choice = ToolChoice::named, .name = "search", .leading_keys = {"none"}}),
      "none: must be a property, and lead once");
}

TEST_CASE("XmlCall::write throws for a string that its element cannot hold") {
  const auto cannot = [](const Json& value, const std::string& why) {
    CHECK_THROWS_WITH(
        qwen.write(std::vector<ToolCall>{{"search", {{"after", value}}}}, documents()), why);
  };
  cannot("a</parameter>b", "</parameter>: a string must not hold the delimiter that closes it");
  cannot("null", "null: must not be a string where null may stand, too");
  CHECK(argument(glm, glm.write(std::vector<ToolCall>{{"search", {{"query", "a</parameter>b"}}}},
                                documents())) == "a</parameter>b");
}

TEST_CASE("XmlCall::parse of a broken call throws with its byte") {
  const std::map<std::string, std::string> cases = {
      {"<tool_call>", "byte 11"},
      {"<tool_call>\n<function=", "byte 22"},
      {"<tool_call>\n<function=>", "byte 22"},
      {"<tool_call>\n<function=now>", "byte 26"},
      {"<tool_call>\n<function=now></function>", "byte 37"},
      {"<tool_call>\n<function=now></function></tool_call> and", "byte 50"},
      {"<tool_call>\n<function=search><parameter=query", "byte 45"},
      {"<tool_call>\n<function=search><parameter=query>\nx", "byte 46"},
      {"<tool_call>\n<function=search><parameter=limit>\nx\n</parameter>", "byte 47"},
      {"<tool_call>\n<function=search><parameter=query>\xff</parameter>", "byte 46"}};
  for (const auto& [text, where] : cases) {
    INFO(text);
    CHECK(error_of(qwen, text) == "malformed_call " + where);
  }
}

TEST_CASE("XmlCall with alternative arguments accepts in each only its own values") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"kind": {"enum": ["text", "number"]}}, "required": ["kind"], "oneOf": [
      {"properties": {"kind": {"const": "text"}, "value": {"type": "string"}}, "required": ["value"]},
      {"properties": {"kind": {"const": "number"}, "value": {"type": "integer"}}}]}}])");
  const auto call     = [](const char* kind, const std::string& value) {
    std::string text =
        std::string("<tool_call>\n<function=f>\n<parameter=kind>\n") + kind + "\n</parameter>\n";
    if (!value.empty()) text += "<parameter=value>\n" + value + "\n</parameter>\n";
    return text + "</function>\n</tool_call>";
  };
  const auto accepts = [&](const std::string& text, ChoiceOptions options = {}) {
    options.choice = ToolChoice::required;
    return test::refused(qwen, tools, text, options) == -1;
  };
  // The alternatives admit strings and integers, so a string keeps its quotes.
  CHECK(accepts(call("text", "\"a\"")));
  CHECK(accepts(call("number", "3")));
  CHECK(accepts(call("number", "")));
  CHECK_FALSE(accepts(call("text", "3")));
  CHECK_FALSE(accepts(call("text", "a")));
  CHECK_FALSE(accepts(call("number", "\"a\"")));
  CHECK_FALSE(accepts(call("text", "")));
  for (const Json& value : {Json("a"), Json(3)}) {
    const std::vector<ToolCall> calls{
        {"f", {{"kind", value.is_string() ? "text" : "number"}, {"value", value}}}};
    CHECK(qwen.parse(qwen.write(calls, tools), tools) == calls);
    CHECK(accepts(qwen.write(calls, tools), {.documented_order = true}));
  }
}

TEST_CASE("XmlCall with leading_keys accepts a key of any alternative and refuses unknown keys") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "dependentRequired": {"b": ["a"]}, "anyOf": [{"properties": {"c": {"type": "integer"}},
    "required": ["c"]}, {"required": ["a"]}]}}])");
  const auto options  = [](const char* key) {
    return ChoiceOptions{.choice = ToolChoice::named, .name = "f", .leading_keys = {key}};
  };
  const auto call = [](const std::vector<std::string>& keys) {
    std::string text = "<tool_call>\n<function=f>\n";
    for (const std::string& key : keys) text += "<parameter=" + key + ">\n1\n</parameter>\n";
    return text + "</function>\n</tool_call>";
  };
  CHECK(test::refused(qwen, tools, call({"b", "a"}), options("b")) == -1);
  CHECK(test::refused(qwen, tools, call({"a", "b"}), options("b")) >= 0);
  CHECK(test::refused(qwen, tools, call({"b", "c"}), options("b")) >= 0);
  CHECK(test::refused(qwen, tools, call({"c"}), options("c")) == -1);
  try {
    static_cast<void>(test::refused(qwen, tools, "", options("d")));
    FAIL("must throw");
  } catch (const Error& e) {
    CHECK(e.code() == Errc::invalid_option);
    CHECK(e.where() == "d");
  }
}

TEST_CASE("XmlCall with null in one alternative refuses the string null in the others") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", "oneOf": [
      {"properties": {"v": {"type": "string"}, "a": {"const": 1}}, "required": ["a"]},
      {"properties": {"v": {"type": "null"}, "b": {"const": 1}}, "required": ["b"]}]}}])");
  const auto accepts = [&](const char* key, const char* value) {
    const std::string text = std::string("<tool_call>\n<function=f>\n<parameter=v>\n") + value +
                             "\n</parameter>\n<parameter=" + key +
                             ">\n1\n</parameter>\n</function>\n</tool_call>";
    return test::refused(qwen, tools, text, {.choice = ToolChoice::required}) == -1;
  };
  CHECK(accepts("a", "x"));
  CHECK(accepts("a", "nulls"));
  CHECK_FALSE(accepts("a", "null"));
  CHECK(accepts("b", "null"));
  CHECK_FALSE(accepts("b", "x"));
}

TEST_CASE("XmlCall of parameters that it cannot write throws with their place") {
  const auto error = [](const std::string& parameters) {
    const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": )" + parameters + "}]");
    try {
      static_cast<void>(test::refused(qwen, tools, ""));
    } catch (const Error& e) {
      return std::string(name(e.code())) + " " + e.where();
    }
    return std::string("none");
  };
  CHECK(error(R"({"type": "object", "properties": {"a": false, "b": {}}})") == "none");
  CHECK(error(R"({"type": "object", "properties": {"a": false}, "required": ["a"]})") ==
        "unsatisfiable_schema #/0/parameters");
  CHECK(error(R"({"type": "object", "properties": {"a": {}}, "not": {}})") ==
        "unsatisfiable_schema #/0/parameters");
  CHECK(error(R"({"type": "object", "properties": {"a": {"enum": ["</parameter>"]}}})") ==
        "unsupported_keyword #/0/parameters/properties/a");
  CHECK(error(R"({"type": "object", "anyOf": [{"properties": {" a": {}}}]})") ==
        "unsupported_name #/0/parameters");
  CHECK(
      error(R"({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}})") ==
      "unsupported_keyword #/0/parameters/properties/a/uniqueItems");
}
