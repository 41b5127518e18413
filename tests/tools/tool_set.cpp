#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/nlohmann.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

std::string error_of(std::string_view text) {
  return test::error_of([&] { return ToolSet::parse(text); });
}

constexpr std::string_view weather =
    R"({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})";

std::string with_parameters(std::string_view pattern) {
  std::string text(pattern);
  for (auto at = text.find('$'); at != std::string::npos; at = text.find('$')) {
    text.replace(at, 1, weather);
  }
  return text;
}

const char* const bfcl_files[] = {"bfcl/exec.jsonl",
                                  "bfcl/irrelevance.jsonl",
                                  "bfcl/live_irrelevance.jsonl.gz",
                                  "bfcl/live_multiple.jsonl.gz",
                                  "bfcl/live_parallel.jsonl",
                                  "bfcl/live_parallel_multiple.jsonl",
                                  "bfcl/live_relevance.jsonl",
                                  "bfcl/live_simple.jsonl",
                                  "bfcl/multiple.jsonl",
                                  "bfcl/parallel.jsonl",
                                  "bfcl/parallel_multiple.jsonl",
                                  "bfcl/simple_python.jsonl"};

}  // namespace

TEST_CASE("ToolSet reads every form of a document") {
  struct Row {
    std::string document;
    DocumentForm form;
    std::string pointer;
    bool read_only;
  };
  const std::vector<Row> rows = {
      {R"([{"type": "function", "function": {"name": "w", "parameters": $}}])",
       DocumentForm::openai, "#/0/function/parameters", false},
      {R"({"type": "function", "name": "w", "parameters": $})", DocumentForm::openai,
       "#/parameters", false},
      {R"({"tools": [{"name": "w", "parameters": $}]})", DocumentForm::openai,
       "#/tools/0/parameters", false},
      {R"({"functions": [{"name": "w", "parameters": $}]})", DocumentForm::openai,
       "#/functions/0/parameters", false},
      {R"({"tools": [{"name": "w", "inputSchema": $, "annotations": {"readOnlyHint": true}}]})",
       DocumentForm::mcp, "#/tools/0/inputSchema", true},
      {R"([{"name": "w", "inputSchema": $, "annotations": {"readOnlyHint": "true"}}])",
       DocumentForm::mcp, "#/0/inputSchema", false},
      {R"([{"name": "w", "inputSchema": $, "annotations": {"idempotentHint": true}}])",
       DocumentForm::mcp, "#/0/inputSchema", false},
      {R"([{"name": "w", "input_schema": $}])", DocumentForm::mcp, "#/0/input_schema", false},
      {R"([{"name": "w", "parameters": $, "annotations": {"readOnlyHint": true}}])",
       DocumentForm::openai, "#/0/parameters", false},
      {R"([{"name": "w", "parameters": {"type": "dict", "properties": {"city": {"type": "string"}},
            "required": ["city"]}}])",
       DocumentForm::bfcl, "#/0/parameters", false},
      {R"([{"name": "w", "input_parameters": {"city": {"type": "str"}}, "output_parameters": {}}])",
       DocumentForm::api_bank, "#/0/input_parameters", false},
      {R"([{"name": "w", "input_parameters": {"city": {"type": "str"}}, "json_schema": $}])",
       DocumentForm::api_bank, "#/0/json_schema", false},
  };
  const auto expected = tooldecode::text::parse_json(
      R"({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
          "additionalProperties": false})");
  for (const Row& row : rows) {
    INFO(row.document);
    const ToolSet tools = ToolSet::parse(with_parameters(row.document));
    REQUIRE(tools.size() == 1);
    CHECK(tools[0].name == "w");
    CHECK(tools[0].form == row.form);
    CHECK(tools[0].parameters_pointer == row.pointer);
    CHECK(tools[0].read_only == row.read_only);
    CHECK(canonical_json(tools[0].parameters) == canonical_json(expected));
    CHECK(tools.find("w") == 0u);
    CHECK_FALSE(tools.find("x"));
    CHECK_FALSE(tools.notes().empty());
  }
}

TEST_CASE("ToolSet reads tools without parameters as tools without arguments") {
  for (const std::string text :
       {R"({"name": "f"})", R"({"name": "f", "description": null, "parameters": null})",
        R"({"name": "f", "parameters": {}})", R"({"function": {"name": "f"}, "type": "function"})",
        R"({"name": "f", "inputSchema": {"type": "object"}})",
        R"({"name": "f", "input_parameters": {}})", R"({"name": "f", "output_schema": {}})"}) {
    INFO(text);
    const ToolSet tools = ToolSet::parse(text);
    CHECK(tools[0].parameters["additionalProperties"] == false);
    CHECK(tools[0].parameters["properties"].empty());
  }
  CHECK(ToolSet::parse("[]").empty());
  CHECK(ToolSet::parse(R"({"tools": []})").empty());
}

TEST_CASE("ToolSet with lenient readings makes API-Bank's defaults optional, None ones nullable") {
  const ToolSet tools = ToolSet::parse(
      R"([{"name": "f", "input_parameters": {"a": {"type": "int"}, "b": {"type": "str"},
           "c": {"type": "list[str]"}}, "defaults": {"b": "None", "c": "[]"}}])",
      {}, LenientReadings::all());
  CHECK(canonical_json(tools[0].parameters) ==
        canonical_json(tooldecode::text::parse_json(
            R"({"type": "object", "properties": {"a": {"type": "integer"},
          "b": {"type": ["string", "null"], "default": null},
          "c": {"type": "array", "items": {"type": "string"}}},
          "required": ["a"], "additionalProperties": false})")));
}

TEST_CASE("ToolSet reads documents of Bedrock and Gemini") {
  const Json schema = tooldecode::text::parse_json(
      R"({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
          "additionalProperties": false})");
  const std::string own = schema.text();
  for (const std::string& text :
       {R"({"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": )" + own +
            "}}}]}}",
        R"([{"toolSpec": {"name": "f", "inputSchema": {"json": )" + own + "}}}]",
        R"([{"name": "f", "inputSchema": {"json": )" + own + "}}]",
        R"({"tools": [{"functionDeclarations": [{"name": "f", "parameters": )" + own + "}]}]}",
        R"({"function_declarations": [{"name": "f", "parametersJsonSchema": )" + own + "}]}"}) {
    INFO(text);
    const ToolSet tools = ToolSet::parse(text);
    REQUIRE(tools.size() == 1);
    CHECK(tools[0].name == "f");
    CHECK(tools[0].parameters == schema);
    CHECK(tools.notes().empty());
  }
  CHECK(ToolSet::parse(R"([{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object",
      "additionalProperties": false, "properties": {"a": {"type": "int"}}}}}}])")
            .notes()[0]
            .pointer == "#/0/toolSpec/inputSchema/json/properties/a/type");
}

TEST_CASE("ToolSet::parse of a bad document throws with the error's place") {
  CHECK(error_of("") == "malformed_json byte 0");
  CHECK(error_of("[") == "malformed_json byte 1");
  CHECK(error_of(R"([{"name": "f", "name": "g"}])") == "malformed_json byte 15");
  CHECK(error_of("5") == "malformed_document #");
  CHECK(error_of("null") == "malformed_document #");
  CHECK(error_of("{}") == "malformed_document #/name");
  CHECK(error_of("[[]]") == "malformed_document #/0");
  CHECK(error_of(R"([{"description": "x"}])") == "malformed_document #/0/name");
  CHECK(error_of(R"([{"name": ""}])") == "malformed_document #/0/name");
  CHECK(error_of(R"([{"name": 5}])") == "malformed_document #/0/name");
  CHECK(error_of(R"([{"name": "a\nb"}])") == "malformed_document #/0/name");
  CHECK(error_of(R"([{"name": "f", "description": 5}])") == "malformed_document #/0/description");
  CHECK(error_of(R"([{"name": "f"}, {"type": "function", "function": {"name": "f"}}])") ==
        "duplicate_tool #/1/function/name");
  CHECK(error_of(R"([{"type": "web_search"}])") == "malformed_document #/0/type");
  CHECK(error_of(R"([{"type": "web_search_20250305", "name": "f"}])") ==
        "malformed_document #/0/type");
  CHECK(error_of(R"([{"name": "f", "parameters": []}])") == "malformed_document #/0/parameters");
  CHECK(error_of(R"([{"name": "f", "parameters": true}])") == "malformed_document #/0/parameters");
  CHECK(
      error_of(R"([{"name": "f", "function": {"name": "g", "parameters": {"type": "string"}}}])") ==
      "malformed_document #/0/function/parameters/type");
  CHECK(error_of(R"([{"name": "f", "arguments": {"a": "string"}}])") ==
        "malformed_document #/0/arguments");
  CHECK(error_of(R"([{"name": "f", "input-type": ["text"]}])") ==
        "malformed_document #/0/input-type");
  CHECK(error_of(R"([{"name": "f", "input_parameters": []}])") ==
        "malformed_document #/0/input_parameters");
  CHECK(error_of(R"([{"name": "f", "input_parameters": {"a": "str"}}])") ==
        "malformed_document #/0/input_parameters/a");
}

TEST_CASE("ToolSet of a tool that is not strict accepts any object as arguments") {
  const std::string schema = R"({"type": "object", "properties": {
      "b": {"type": "str", "default": "x"}, "a": {"type": "integer", "maximum": 3}},
      "required": ["a", "c"], "additionalProperties": false})";
  for (const std::string& text :
       {R"([{"type": "function", "function": {"name": "f", "strict": false, "parameters": )" +
            schema + "}}]",
        R"([{"type": "function", "name": "f", "strict": false, "parameters": )" + schema + "}]",
        R"([{"name": "f", "strict": false, "input_schema": )" + schema + "}]"}) {
    INFO(text);
    const ToolSet tools = ToolSet::parse(text);
    CHECK_FALSE(tools[0].strict);
    CHECK(tools[0].parameters ==
          tooldecode::text::parse_json(R"({"type": "object", "properties": {"b": {}, "a": {}}})"));
    CHECK(argument_names(tools[0]) == std::vector<std::string>{"b", "a"});
    CHECK(required_names(tools[0]).empty());
    CHECK(tools.notes().empty());
    const Json& documented = documented_parameters(tools[0]);
    CHECK(documented["properties"]["b"] == Json{{"default", "x"}, {"type", "string"}});
    CHECK(documented["properties"]["a"]["maximum"] == 3);
    CHECK(call_key({"f", {{"a", 1}}}, &tools[0]) ==
          call_key({"f", {{"a", 1}, {"b", "x"}}}, &tools[0]));
  }
  for (const char* strict : {R"("strict": true, )", R"("strict": null, )", ""}) {
    const ToolSet tools = ToolSet::parse(R"({"name": "f", )" + std::string(strict) +
                                         R"("parameters": )" + schema + "}");
    CHECK(tools[0].strict);
    CHECK(required_names(tools[0]) == std::vector<std::string>{"a", "c"});
    CHECK(&documented_parameters(tools[0]) == &tools[0].parameters);
  }
  const ToolSet silent = ToolSet::parse(R"({"name": "f", "strict": false})");
  CHECK(silent[0].parameters.value("additionalProperties", Json(true)) == true);
  CHECK(error_of(R"([{"function": {"name": "f", "strict": "no"}}])") ==
        "malformed_document #/0/function/strict");
  CHECK(error_of(R"([{"name": "f", "strict": false, "parameters": {"type": "string"}}])") ==
        "malformed_document #/0/parameters/type");
}

TEST_CASE("ToolSet::subset shares its tools with the set it comes from") {
  const ToolSet tools        = ToolSet::parse(R"([{"name": "a"}, {"name": "b"}, {"name": "c"}])");
  const std::size_t chosen[] = {2, 0}, twice[] = {1, 1};
  const auto names = [](const ToolSet& set) {
    std::string text;
    for (const Tool& tool : set) text += tool.name;
    return text;
  };
  CHECK(names(tools) == "abc");
  CHECK(names(ToolSet{}).empty());
  auto at = tools.begin();
  CHECK(at++->name == "a");
  CHECK((*at).name == "b");
  CHECK(&*++at == &tools[2]);
  CHECK(++at == tools.end());

  const ToolSet some = tools.subset(chosen);
  CHECK(names(some) == "ca");
  CHECK(some.find("c") == 0u);
  CHECK(some.find("a") == 1u);
  CHECK_FALSE(some.find("b"));
  CHECK(some.share(0) == tools.share(2));
  CHECK(&some[1] == &tools[0]);
  CHECK(tools.subset({}).empty());
  CHECK_THROWS_AS(tools.subset(twice), Error);

  std::shared_ptr<const Tool> alone;
  {
    const ToolSet one = ToolSet::parse(R"({"name": "alone"})");
    alone             = one.share(0);
  }
  CHECK(alone->name == "alone");
}

TEST_CASE("ToolSet::with replaces one tool by that of another document") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "a"}, {"name": "b"}, {"name": "c"}])");
  const ToolSet more  = tools.with(1, tooldecode::text::parse_json(with_parameters(
                                         R"({"name": "d", "description": "x", "parameters": $})")));
  REQUIRE(more.size() == 3);
  CHECK(more[1].name == "d");
  CHECK(more[1].description == "x");
  CHECK(more.find("d") == 1u);
  CHECK_FALSE(more.find("b"));
  CHECK(more.find("c") == 2u);
  CHECK(more.share(0) == tools.share(0));
  CHECK(more.share(2) == tools.share(2));
  CHECK(more.notes().size() > tools.notes().size());
  CHECK(tools[1].name == "b");  // the first set is unchanged
  CHECK(tools.find("b") == 1u);

  const ToolSet same = tools.with(1, Json{{"name", "b"}, {"description", "new"}});
  CHECK(same[1].description == "new");
  CHECK(same.find("b") == 1u);
  CHECK(same.share(1) != tools.share(1));
  CHECK(tools.with(0, tooldecode::text::parse_json(R"({"tools": [{"name": "z"}]})"))[0].name ==
        "z");

  const auto error = [&](const Json& document) {
    try {
      static_cast<void>(tools.with(1, document));
    } catch (const Error& e) {
      return std::string(name(e.code()));
    }
    return std::string("none");
  };
  CHECK(error(Json{{"name", "c"}}) == "duplicate_tool");
  CHECK(error(Json::array()) == "malformed_document");
  CHECK(error(tooldecode::text::parse_json(R"([{"name": "x"}, {"name": "y"}])")) ==
        "malformed_document");
  CHECK(error(Json{{"name", ""}}) == "malformed_document");
}

TEST_CASE("ToolSet::with keeps notes of the tools that are there, subset those of its tools") {
  const auto document = [](const std::string& name, const std::string& keyword) {
    return tooldecode::text::parse_json(R"({"name": ")" + name + R"(", "parameters": {"type": )" +
                                        R"("object", "properties": {"p": {"type": "string", ")" +
                                        keyword + R"(": 1}}, "additionalProperties": false}})");
  };
  const auto texts = [](const ToolSet& tools) {
    std::string all;
    for (const auto& note : tools.notes()) all += note.tool + ' ' + note.pointer + '\n';
    return all;
  };
  ToolSet tools = ToolSet::parse(R"([{"name": "x"}, {"name": "y"}])");
  tools         = tools.with(1, document("b", "minLenght"));
  const auto b  = texts(tools.subset(std::vector<std::size_t>{1}));
  CHECK(b == "b #/parameters/properties/p/minLenght\n");
  for (int i = 0; i < 3; ++i) tools = tools.with(0, document("a", "maxLenght"));
  CHECK(texts(tools) == b + "a #/parameters/properties/p/maxLenght\n");
  CHECK(texts(tools.with(0, document("a", "maxLength"))) == b);
}

TEST_CASE("ToolSet::with relaxes a tool as the set was read") {
  const auto broken = tooldecode::text::parse_json(
      R"({"name": "a", "parameters": {"type": "object", "properties": {"p": 5}}})");
  const auto read = [](ToolEnforcement enforcement) {
    return ToolSet::parse(R"([{"name": "a"}, {"name": "b"}])", {}, {}, enforcement);
  };
  const ToolSet relaxed = read(ToolEnforcement::relax).with(0, broken);
  CHECK(std::ranges::any_of(relaxed.notes(), [](const auto& note) {
    return note.tool == "a" && tooldecode::tools::is_given_up(note.reading);
  }));
  CHECK_THROWS_AS(read(ToolEnforcement::strict).with(0, broken), Error);
  CHECK_THROWS_AS(read(ToolEnforcement::drop).with(0, broken), Error);
}

TEST_CASE("ToolSet::parse reads all lists of a document") {
  const ToolSet tools = ToolSet::parse(
      R"({"tools": [{"name": "a"}, {"functions": [{"name": "b"}]}], "functions": [{"name": "c"}]})");
  REQUIRE(tools.size() == 3);
  CHECK((tools.find("a") && tools.find("b") && tools.find("c")));
}

TEST_CASE("ToolSet::find gives each tool by its name after many replacements") {
  std::mt19937 random(1);
  const auto any_name = [&] { return std::string(1 + random() % 3, "ab"[random() % 2]) + "c"; };
  ToolSet tools = ToolSet::parse(R"([{"name": "f"}, {"name": "h"}, {"name": "e"}, {"name": "g"}])");
  std::size_t replaced = 0, taken = 0;
  for (int round = 0; round < 500; ++round) {
    const std::size_t index = random() % tools.size();
    try {
      tools = tools.with(index, Json{{"name", any_name()}});
      ++replaced;
    } catch (const Error& error) {
      REQUIRE(error.code() == Errc::duplicate_tool);
      ++taken;
    }
    for (std::size_t i = 0; i < tools.size(); ++i) REQUIRE(tools.find(tools[i].name) == i);
    const std::string name = any_name();
    const auto known       = std::find_if(tools.begin(), tools.end(),
                                          [&](const Tool& tool) { return tool.name == name; });
    REQUIRE(tools.find(name).has_value() == (known != tools.end()));
  }
  CHECK(replaced > 50);
  CHECK(taken > 50);
}

TEST_CASE("ToolSet::parse of a hostile document reads it or throws") {
  for (const std::string open : {"[", "{\"a\":", "{\"items\":"}) {
    std::string text = R"([{"name": "f", "parameters": {"properties": {"x": )";
    for (int i = 0; i < 100000; ++i) text += open;
    CHECK(error_of(text).starts_with("limit_exceeded byte "));
  }
  Json deep = "x";
  for (int i = 0; i < 1000; ++i) deep = Json{{"items", deep}};
  CHECK_THROWS_AS(ToolSet::from_json(Json{{"name", "f"}, {"parameters", deep}}), Error);
  CHECK_THROWS_AS(ToolSet::from_json(Json{{"name", "\xff"}}), Error);
  CHECK_THROWS_AS(ToolSet::from_json(Json{{"name", "f"}, {"x", {{"\xff", 1}}}}), Error);

  const std::string seed = with_parameters(
      R"([{"type": "function", "function": {"name": "f", "parameters": $}}, {"name": "g",
          "inputSchema": {"type": "object", "properties": {"a": {"type": "array", "enum": ["x"],
          "default": null, "required": true}, "b": {"anyOf": [{"properties": {"c": {}}}]}},
          "required": ["a", "z"], "definitions": {"d": {"enum": [1], "type": "string"}}}},
          {"name": "h", "input_parameters": {"p": {"type": "list[str]"}}, "defaults": {"p": "None"}}])");
  const std::string words[] = {"null",     "true",  "[]",     "{}",        "5",
                               "\"dict\"", "\"x\"", "[null]", "{\"a\": 1}"};
  int accepted              = 0;
  for (unsigned number = 0; number < 5000; ++number) {
    std::mt19937 random(number);
    std::string text = seed;
    for (auto edits = 1 + random() % 3; edits-- > 0;) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 6);
      } else {  // Sets a random member to another value.
        const std::size_t colon = text.find(": ", at);
        if (colon == std::string::npos) continue;
        const std::size_t end = text.find_first_of(",}", colon);
        text.replace(colon + 2, end == std::string::npos ? 1 : end - colon - 2,
                     words[random() % 9]);
      }
    }
    CAPTURE(number, text);
    accepted += error_of(text) == "none" ? 1 : 0;
  }
  CHECK(accepted > 100);
}

TEST_CASE("ToolSet reads BFCL's original documents like their published conversion",
          "[published]") {
  std::map<Reading, int> notes;
  int functions = 0, rows = 0;
  for (const char* file : bfcl_files) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const auto& row : test::read_jsonl(path)) {
      INFO(row["id"]);
      Json converted = Json::array(), original = Json::array();
      for (const Json& function : row["functions"]) {
        converted.push_back(function);
        original.push_back(
            {{"name", function["name"]}, {"parameters", function["original_parameters"]}});
      }
      const ToolSet a = ToolSet::from_json(converted);
      const ToolSet b = ToolSet::from_json(original);
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(canonical_json(a[i].parameters) == canonical_json(b[i].parameters));
      }
      for (const Note& note : b.notes()) ++notes[note.reading];
      functions += static_cast<int>(a.size());
      ++rows;
    }
  }
  CHECK(rows == 1828);
  std::string counts = std::to_string(functions) + " functions:";
  for (const auto& [reading, count] : notes) {
    counts += " " + std::to_string(static_cast<int>(reading)) + "=" + std::to_string(count);
  }
  INFO(counts);
  CHECK(notes[Reading::type_name] > 5000);
  CHECK(notes[Reading::nullable] > 500);
  CHECK(notes[Reading::enum_over_type] == 59);
  CHECK(notes[Reading::array_enum] == 9);
}

TEST_CASE("ToolSet reads API-Bank's original documents like their published conversion",
          "[published]") {
  TOOLDECODE_REQUIRE_SHARED(path, "apibank/apis.jsonl");
  int compared = 0;
  for (const auto& row : test::read_jsonl(path)) {
    INFO(row["name"]);
    Json bare = row;
    bare.erase("json_schema");
    const ToolSet a = ToolSet::from_json(Json::array({Json(row)}), {}, LenientReadings::all());
    const ToolSet b = ToolSet::from_json(Json::array({bare}), {}, LenientReadings::all());
    // Two tools take **kwargs; only the published schema lists their parameters. Only `defaults`
    // has a default of None.
    auto expected = tooldecode::JsonValue(a[0].parameters),
         actual   = tooldecode::JsonValue(b[0].parameters);
    if (row["name"] == "ForgotPassword" || row["name"] == "Translate") continue;
    for (auto& property : actual["properties"]) {
      if (property.erase("default") != 0) property["type"] = property["type"][0];
    }
    const auto by_text = [](const auto& x, const auto& y) { return x.string() < y.string(); };
    std::ranges::sort(actual["required"].list(), by_text);
    std::ranges::sort(expected["required"].list(), by_text);
    CHECK(canonical_json(actual) == canonical_json(expected));
    ++compared;
  }
  CHECK(compared == 73);
}

TEST_CASE("ToolSet reads every shared inventory except two with repeated names") {
  int tools = 0;
  std::string refused;
  const auto count = [&](const tooldecode::JsonValue& functions) {
    try {
      tools += static_cast<int>(ToolSet::from_json(Json(functions)).size());
    } catch (const Error& e) {
      refused += std::string(name(e.code())) + " " + e.where() + "; ";
    }
  };
  for (const char* file : {"apibank/level1.jsonl", "apibank/level2.jsonl", "tools/toolalpaca.jsonl",
                           "tools/toolbench_queries.jsonl.gz"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    for (const auto& row : test::read_jsonl(path)) {
      count(row.contains("apis") ? row["apis"] : row["functions"]);
    }
  }
  for (const char* file :
       {"tools/restbench_spotify_functions.jsonl", "tools/restbench_tmdb_functions.jsonl"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    count(test::read_jsonl(path));
  }
  TOOLDECODE_REQUIRE_SHARED(path, "bfcl/multi_turn_functions.jsonl");
  for (const auto& row : test::read_jsonl(path)) count(tooldecode::JsonValue::array({row}));
  CHECK(tools > 3000);
  // Two rows of ToolBench have two tools with one name.
  CHECK(refused == "duplicate_tool #/1/name; duplicate_tool #/6/name; ");
}

TEST_CASE("ToolSet::from_json refuses documents deeper than 200 levels, as parse does") {
  for (const std::size_t depth : {std::size_t{200}, std::size_t{201}}) {
    Json document = 1;
    for (std::size_t i = 0; i < depth; ++i) document = Json::array({std::move(document)});
    try {
      static_cast<void>(ToolSet::from_json(document));
      FAIL("an array of arrays is no tool");
    } catch (const Error& e) {
      CHECK(e.code() == (depth > 200 ? Errc::limit_exceeded : Errc::malformed_document));
      CHECK(error_of(document.text()).starts_with(name(e.code())));
    }
  }
}

TEST_CASE("ToolSet keeps each document's members, from text and from values, listed and alone") {
  const std::string one = R"({"type": "function",  "function": {"name": "f", "more": [1, 2.50],
      "parameters": {"type": "object", "properties": {"a": {"type": "string", "optional": true}}}}})";
  const Json expected   = tooldecode::text::parse_json(one);
  for (const std::string& text : {one, '[' + one + ']', R"({"tools": [)" + one + "]}"}) {
    INFO(text);
    for (const ToolSet& set :
         {ToolSet::parse(text), ToolSet::from_json(tooldecode::text::parse_json(text))}) {
      REQUIRE(set.size() == 1);
      CHECK(tooldecode::text::parse_json(set[0].document) == expected);
    }
  }
}

TEST_CASE("ToolSet keeps numbers of parameters exact and shows documents as plain JSON") {
  const std::string text = R"({"name": "f", "parameters": {"type": "object", "properties": {
      "id": {"type": "integer", "minimum": 18446744073709551617, "enum": [1, 18446744073709551618],
             "default": 18446744073709551618},
      "x": {"type": "number", "maximum": "18446744073709551617"}}}})";
  const ToolSet set      = ToolSet::parse(text);
  const auto& properties = set[0].parameters["properties"];
  CHECK(properties["id"]["minimum"].text() == "18446744073709551617");
  CHECK(properties["id"]["enum"][1].text() == "18446744073709551618");
  CHECK(properties["id"]["type"] == "integer");  // the enum has only integers
  CHECK(properties["x"]["maximum"].text() == "18446744073709551617");
  CHECK(tooldecode::text::parse_json(set[0].document) == tooldecode::text::parse_json(text));
  Json arguments = Json::object();
  fill_defaults(arguments, set[0].parameters);
  CHECK(arguments == tooldecode::text::parse_exact_json(R"({"id": 18446744073709551618})"));
  // A value from another parser holds doubles.
  const ToolSet rounded = ToolSet::from_json(tooldecode::text::parse_json(text));
  CHECK_FALSE(ExactNumber::is_in(rounded[0].parameters["properties"]["id"]));
}

TEST_CASE("ToolSet reads argument names where `required` holds other things than names") {
  for (const char* required :
       {R"([0.5, "a"])", R"([{"type": "string"}, "a"])", R"({"x": {}})", "7"}) {
    INFO(required);
    const Json document{{{"type", "function"},
                         {"function",
                          {{"name", "f"},
                           {"parameters",
                            {{"type", "object"},
                             {"properties", {{"a", Json::object()}}},
                             {"required", tooldecode::text::parse_json(required)}}}}}}};
    const ToolSet tools = ToolSet::from_json(document);
    CHECK(argument_names(tools[0]) == std::vector<std::string>{"a"});
    CHECK(required_names(tools[0]).size() == (required[0] == '[' ? 1 : 0));
  }
  // An array for `properties` has no names.
  const ToolSet listed = ToolSet::parse(
      R"([{"name": "f", "parameters": {"type": "dict", "properties": [[{}]], "required": ["t"]}}])");
  CHECK(argument_names(listed[0]) == std::vector<std::string>{"t"});
}
