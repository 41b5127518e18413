#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/data.hpp>
#include <support/format_checks.hpp>
#include <support/mutate.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

namespace {

const PythonCall python;

std::string error_of(std::string_view text, const ToolSet& tools = {}) {
  return test::error_of([&] { return python.parse(text, tools); });
}

std::vector<ToolCall> calls_of(const tooldecode::JsonValue& row) {
  std::vector<ToolCall> calls;
  const auto& json = row["call_json"];
  for (const auto& call : json.is_array() ? json : tooldecode::JsonValue::array({json})) {
    calls.push_back({call["name"].string(), Json(call["arguments"])});
  }
  return calls;
}

}  // namespace

TEST_CASE("PythonCall::parse reads call lists as Python does") {
  const std::vector<ToolCall> expected{{"f", tooldecode::text::parse_json(R"({"a": 1, "b": "x"})")},
                                       {"m.g"}};
  for (const std::string text :
       {"[f(a=1, b='x'), m.g()]", " \n[f(a=1,b=\"x\"),m.g()]\n",
        "[ f ( a = 1 , b = 'x' , ) ,\n m.g( ) ]", "[f(b='x', a=1.0), m.g()]"}) {
    INFO(text);
    CHECK(python.parse(text, {}) == expected);
  }
  CHECK(python.write(expected) == "[f(a=1, b='x'), m.g()]");
  CHECK(python.parse("[]", {}).empty());
  CHECK(python.parse("There is no call [f()] here", {}).empty());
  CHECK(python.parse("", {}).empty());
  const auto nested = python.parse("[f(a=[1, {'k=': (2, None)}], b='a=1, (]')]", {});
  CHECK(nested[0].arguments.text() == R"({"a":[1,{"k=":[2,null]}],"b":"a=1, (]"})");
}

TEST_CASE("PythonCall::parse gives positional arguments the documented names") {
  const ToolSet tools = ToolSet::parse(
      R"([{"name": "sort", "parameters": {"type": "object",
           "properties": {"file": {"type": "string"}, "down": {"type": "boolean"}}}}])");
  CHECK(python.parse("[sort('a=b.pdf')]", tools)[0].arguments.text() == R"({"file":"a=b.pdf"})");
  CHECK(python.parse("[sort('x', down=True)]", tools)[0].arguments.text() ==
        R"({"file":"x","down":true})");
  CHECK(error_of("[sort('x', file='y')]", tools) == "malformed_call byte 11");
  CHECK(error_of("[sort(file='y', True)]", tools) == "malformed_call byte 16");
  CHECK(error_of("[sort('x', True, 3)]", tools).starts_with("malformed_call byte 17"));
  CHECK(error_of("[other('x')]", tools).starts_with("malformed_call byte 7"));
}

TEST_CASE("PythonCall::parse reads documented names that hold the ends of other names") {
  const ToolSet tools = ToolSet::parse(
      R"([{"name": "GET /users/{id} ", "parameters": {"type": "object", "properties": {
           "date from": {}, "ids[]": {}, "a=b": {}, "a": {}, "": {}, " x": {}}}},
          {"name": "GET /users/{id}"}])");
  const std::string text =
      "[GET /users/{id} (date from='x', ids[]=[1], a=b=2, a=3, =4,  x=5), GET /users/{id}()]";
  const auto calls = python.parse(text, tools);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].name == "GET /users/{id} ");
  CHECK(calls[0].arguments.text() == R"({"date from":"x","ids[]":[1],"a=b":2,"a":3,"":4," x":5})");
  CHECK(calls[1].name == "GET /users/{id}");
  CHECK(python.write(calls) == text);
}

TEST_CASE("PythonCall::parse takes the last value of a repeated key that the document admits") {
  const ToolSet tools = ToolSet::parse(R"([
    {"name": "open", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}},
      "additionalProperties": {"type": "integer"}}},
    {"name": "closed", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    {"name": "loose", "strict": false,
      "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    {"name": "patterns", "parameters": {"type": "object", "patternProperties": {"^x": true}}}])");
  for (const std::string name : {"open", "loose", "patterns"}) {
    CAPTURE(name);
    CHECK(python.parse("[" + name + "(x=1, x=2)]", tools)[0].arguments == Json{{"x", 2}});
  }
  CHECK(error_of("[open(a=1, a=2)]", tools) == "malformed_call byte 11");
  CHECK(error_of("[open(1, a=2)]", tools) == "malformed_call byte 9");
  CHECK(error_of("[closed(x=1, x=2)]", tools) == "malformed_call byte 13");
  CHECK(error_of("[none(x=1, x=2)]", tools) == "malformed_call byte 11");
}

TEST_CASE("PythonCall::parse of a broken call list throws with its byte") {
  const std::map<std::string, std::string> cases = {{"[f(a=1)", "byte 7"},
                                                    {"[f(a=1", "byte 6"},
                                                    {"[f(a=", "byte 5"},
                                                    {"[f", "byte 1"},
                                                    {"[", "byte 1"},
                                                    {"[f()] g", "byte 6"},
                                                    {"[f() g()]", "byte 5"},
                                                    {"[f(a=1 b=2)]", "byte 7"},
                                                    {"[f(a=1, a=2)]", "byte 8"},
                                                    {"[f(a=x)]", "byte 5"},
                                                    {"[f(a='x)]", "byte 9"},
                                                    {"[(a=1)]", "byte 1"},
                                                    {"[f(a=1/6)]", "byte 6"}};
  for (const auto& [text, where] : cases) {
    INFO(text);
    CHECK(error_of(text) == "malformed_call " + where);
  }
}

TEST_CASE("PythonCall::parse of a name or key that is not UTF-8 throws") {
  CHECK(error_of("[f\xff()]").starts_with("malformed_call byte"));
  CHECK(error_of("[f(a\xff=1)]").starts_with("malformed_call byte"));
}

TEST_CASE("PythonCall reads and writes published canonical calls without loss", "[published]") {
  int rows = 0, texts = 0;
  for (const char* file :
       {"bfcl/exec.jsonl", "bfcl/live_multiple.jsonl.gz", "bfcl/live_parallel.jsonl",
        "bfcl/live_parallel_multiple.jsonl", "bfcl/live_simple.jsonl", "bfcl/multiple.jsonl",
        "bfcl/parallel.jsonl", "bfcl/parallel_multiple.jsonl", "bfcl/simple_python.jsonl",
        "apibank/level1.jsonl", "apibank/level2.jsonl"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    const bool strings_only = std::string_view(file).starts_with("apibank");
    for (const auto& row : test::read_jsonl(path)) {
      if (!row.contains("call_json") || row["call_json"].is_null()) continue;
      INFO(row["id"]);
      const std::string text = row["call_python"].string();
      const ToolSet tools    = ToolSet::from_json(Json(row[strings_only ? "apis" : "functions"]));
      const auto calls       = python.parse(text, tools);
      const auto expected    = calls_of(row);
      ++rows;
      if (strings_only) {  // the text has every value as a string
        REQUIRE(calls.size() == 1);
        CHECK(calls[0].arguments.size() == expected[0].arguments.size());
        CHECK(python.write(calls) == text);
        ++texts;
      } else {
        CHECK(calls == expected);
        CHECK(python.parse(python.write(calls), tools) == calls);
        texts += python.write(calls) == text ? 1 : 0;
      }
      CHECK(python.parse(python.write(expected), tools) == expected);
    }
  }
  CHECK(rows > 1500);
  // The executable rows differ in quotes, spaces, tuples and positional arguments.
  CHECK(rows - texts < 60);
}

TEST_CASE("PythonCall::parse reads BFCL's multi-turn calls, also with positional arguments") {
  TOOLDECODE_REQUIRE_SHARED(functions, "bfcl/multi_turn_functions.jsonl");
  TOOLDECODE_REQUIRE_SHARED(calls, "bfcl/multi_turn_calls.jsonl");
  std::set<std::string> known;
  Json all = Json::array();
  std::istringstream lines(test::read_text(functions));
  for (std::string line; std::getline(lines, line);) {
    const Json row = text::parse_json(line);
    if (known.insert(row["name"].string()).second) all.push_back(row);
  }
  const ToolSet tools = ToolSet::from_json(all);
  int parsed          = 0;
  for (const auto& row : test::read_jsonl(calls)) {
    for (const auto& turn : row["calls_python"]) {
      for (const auto& call : turn) {
        INFO(call);
        const auto read = python.parse("[" + call.get<std::string>() + "]", tools);
        REQUIRE(read.size() == 1);
        const auto tool = tools.find(read[0].name);
        REQUIRE(tool);
        for (const auto& [key, value] : read[0].arguments.items()) {
          CHECK(tools[*tool].parameters["properties"].contains(key));
        }
        ++parsed;
      }
    }
  }
  CHECK(parsed > 2000);
}

TEST_CASE("PythonCall::parse of mutated text gives calls that write and read back, or an error") {
  const std::string seed_text =
      R"([f(a=1, b='x\n\'"', c=[1.5, None, {'k': (True,)}]), m.g(), h(x="it's", y=-1e-09)])";
  const std::string_view alphabet = "[]()'\"=,.\\ \n{}:aZ0-";
  int read                        = 0;
  for (unsigned seed = 0; seed < 10000; ++seed) {
    std::mt19937 random(seed);
    std::string text = seed_text;
    test::mutate(text, alphabet, random() % 4, random);
    CAPTURE(seed, text);
    std::vector<ToolCall> calls;
    try {
      calls = python.parse(text, {});
    } catch (const Error& e) {
      REQUIRE(e.code() == Errc::malformed_call);
      continue;
    }
    REQUIRE(python.parse(python.write(calls), {}) == calls);
    ++read;
  }
  CHECK(read > 2500);
}

TEST_CASE("PythonCall reads names of tools and arguments back unchanged, or refuses the tool") {
  const auto refusal = [&](const std::string& name, const Json& parameters, const Json& arguments) {
    try {
      const ToolSet tools =
          ToolSet::from_json(Json::array({{{"name", name}, {"parameters", parameters}}}));
      const std::vector<ToolCall> calls{{name, arguments}};
      const std::string text = python.write(calls);
      const int at           = test::refused(python, tools, text);
      CHECK(at == -1);
      CHECK(python.parse(text, tools) == calls);
      return std::string("none");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unsupported_name);
      return error.where();
    }
  };
  const auto listed = [](const std::vector<std::string>& keys) {
    Json properties = Json::object();
    for (const std::string& key : keys) properties[key] = {{"type", "integer"}};
    return Json{{"type", "object"}, {"properties", properties}};
  };
  for (const std::string key :
       {"a,b", "How to", "date\t", " a", "array[]", "a'b", "1", "[", "a\nb"}) {
    CHECK(refusal("f", listed({key}), {{key, 1}}) == "none");
    CHECK(refusal("GET /users/{id}", listed({key, "x"}), {{"x", 2}, {key, 1}}) == "none");
  }
  const std::string at = "#/0/parameters/properties/";
  CHECK(refusal("f", listed({"a=b"}), {{"a=b", 1}}) == at + "a=b");
  CHECK(refusal("f", listed({")"}), {{")", 1}}) == at + ")");
  CHECK(refusal("f", listed({""}), {{"", 1}}) == at);
  CHECK(refusal("f", listed({"a", "a "}), {{"a", 1}}) == at + "a ");
  CHECK(refusal("f(x", listed({}), Json::object()) == "#/0/name");
  CHECK(refusal("]", listed({}), Json::object()) == "#/0/name");
  // Names that are no property's are read like any other.
  const auto named = [&](const std::string& key) {
    return refusal("f",
                   {{"type", "object"},
                    {"propertyNames", {{"enum", {key}}}},
                    {"additionalProperties", {{"type", "integer"}}}},
                   {{key, 1}});
  };
  CHECK(named("a") == "none");
  CHECK(named("How to") == "none");
  CHECK(named("a,b") == "#/0/parameters");
  CHECK(named(" a") == "#/0/parameters");
}

TEST_CASE("PythonCall takes a list after white space as calls, not as text") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {}}])");
  for (const std::string space : {"\f", "\v", "\x1f", "\xc2\xa0", "\xe2\x80\xa8", " \n \f"}) {
    CHECK(test::refused(python, tools, space + "[none()]") == static_cast<int>(space.size()));
    CHECK(test::refused(python, tools, space + "none()]") == -1);
  }
}

TEST_CASE("PythonCall of families with marks reads calls between them, also after text") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}}}}, {"name": "m.g"}])");
  const std::vector<ToolCall> calls{{"f", Json{{"a", 1}}}, {"m.g"}};
  const std::vector<std::pair<PythonCall, std::string>> cases{
      {PythonCall::lfm2(), "<|tool_call_start|>[f(a=1), m.g()]<|tool_call_end|>"},
      {PythonCall::llama_4(), "<|python_start|>[f(a=1), m.g()]<|python_end|>"},
      {PythonCall::olmo_3(), "<function_calls>f(a=1)\nm.g()</function_calls>"},
  };
  for (const auto& [format, text] : cases) {
    CAPTURE(text);
    CHECK(format.write(calls) == text);
    for (const std::string& answer : {text, "So [x]. " + text}) {
      CHECK(format.parse(answer, tools) == calls);
      CHECK(test::refused(format, tools, answer, {}) == -1);
      CHECK(test::refused(format, tools, answer) == -1);
    }
    CHECK(format.parse("So [f(a=1)].", tools).empty());
    CHECK(test::refused(format, tools, "So [f(a=1)].") == -1);
    CHECK(test::refused(format, tools, text + " x") >= 0);
    CHECK(test::error_of(format, tools, text + "x") != "none");
    CHECK(test::error_of(format, tools, text.substr(0, text.size() - 1)) != "none");
  }
  const std::string spaced = "<function_calls>\nf(a=1)\nm.g()\n</function_calls>\n";
  CHECK(PythonCall::olmo_3().parse(spaced, tools) == calls);
  CHECK(test::refused(PythonCall::olmo_3(), tools, spaced) == -1);
}

TEST_CASE(
    "PythonCall::llama_4 in loose form needs no marks where the answer begins with the calls") {
  const ToolSet tools     = ToolSet::parse(R"([{"name": "f"}])");
  const PythonCall format = PythonCall::llama_4();
  CHECK(format.parse(" [f()]", tools) == std::vector<ToolCall>{{"f"}});
  CHECK(test::refused(format, tools, " [f()]") == -1);
  CHECK(test::refused(format, tools, "[g()]") == 1);
  CHECK(test::refused(format, tools, "[f()]", {}) == 0);
  CHECK(PythonCall::lfm2().parse("[f()]", tools).empty());
  CHECK(test::refused(PythonCall::lfm2(), tools, "[f()]", {}) == -1);
}
