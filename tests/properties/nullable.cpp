// OpenAPI's `nullable`, anywhere in a schema: null, or a value of the schema without the keyword.
// Schemas under DocumentRules::nullable, and the parameters of tools, against brute force.
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>
#include <support/form_judge.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) {
  return random() % n;
}

// The same schema without the keyword.
Json without_nullable(Json schema) {
  if (!schema.is_object()) return schema;
  const bool nullable = schema.contains("nullable") && schema["nullable"] == true;
  schema.erase("nullable");
  for (auto& [key, value] : schema.items()) {
    if (key == "anyOf" || key == "oneOf" || key == "allOf") {
      for (Json& branch : value) branch = without_nullable(branch);
    } else if (key == "not" || key == "items" || key == "if" || key == "then" || key == "else") {
      value = without_nullable(value);
    } else if (key == "properties" || key == "$defs") {
      for (auto& [name, child] : value.items()) child = without_nullable(child);
    }
  }
  if (!nullable) return schema;
  Json either;
  either["anyOf"] = Json::array({std::move(schema), {{"type", "null"}}});
  return either;
}

// Schemas of few values; `plain` ones lack what a tool's document reads in another way.
Json random_schema(Random& random, bool plain, unsigned depth = 0) {
  Json schema = Json::object();
  switch (below(random, depth < 3 ? 9 : 4)) {
    case 0:
      schema["type"] = "string";
      if (below(random, 2) == 0) schema["enum"] = {"a", "b"};
      break;
    case 1:
      schema["type"] = std::vector<Json>{"integer", Json{"integer", "boolean"},
                                         Json{"null", "string"}}[below(random, 3)];
      break;
    case 2:
      schema["const"] = std::vector<Json>{1, "a", true}[below(random, 3)];
      break;
    case 3:
      schema["$ref"] = below(random, 2) == 0 ? "#/$defs/word" : "#/$defs/maybe";
      break;
    case 4:
      schema[below(random, 2) == 0 ? "anyOf" : "allOf"] = {random_schema(random, plain, depth + 1),
                                                           random_schema(random, plain, depth + 1)};
      break;
    case 5:
      schema["oneOf"] = {random_schema(random, plain, depth + 1),
                         random_schema(random, plain, depth + 1)};
      break;
    case 6:
      schema["not"] = random_schema(random, plain, depth + 1);
      break;
    case 7:
      schema["type"]  = "array";
      schema["items"] = random_schema(random, plain, depth + 1);
      break;
    default:
      schema["if"]   = random_schema(random, plain, depth + 1);
      schema["then"] = random_schema(random, plain, depth + 1);
      if (plain || below(random, 2) == 0) break;
      schema["type"]       = "object";
      schema["properties"] = {{"a", random_schema(random, plain, depth + 1)}};
  }
  if (below(random, 3) == 0) schema["nullable"] = below(random, 4) != 0;
  return schema;
}

Json definitions() {
  return tooldecode::text::parse_json(R"({"word": {"type": "string", "maxLength": 1},
                         "maybe": {"type": "integer", "nullable": true}})");
}

const std::vector<Json>& values() {
  static const Json all = tooldecode::text::parse_json(
      R"([null, true, false, 1, 2, "a", "b", "cc", [], [null], [1, "a"], {}, {"a": null},
          {"a": 1}, [[null]]])");
  return all.list();
}

}  // namespace

TEST_CASE("Reader with nullable admits a schema's values and null") {
  std::size_t nulls = 0, judged = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    Json root         = random_schema(random, false);
    root["$defs"]     = definitions();
    const Json spelt  = without_nullable(root);
    const Json& bases = spelt.contains("$defs") ? spelt : spelt["anyOf"][0];
    Json whole        = spelt;
    whole["$defs"]    = bases["$defs"];
    schema::Reader reader(root, {.nullable = true});
    test::FormJudge judge(reader.forms);
    CAPTURE(seed, root.text());
    for (const Json& value : values()) {
      bool admitted = false;
      try {
        admitted = judge(reader.form(root, "#"), value);
      } catch (const Error& error) {
        if (error.code() != Errc::unsupported_keyword) FAIL(error.what());
        break;
      }
      if (admitted != slow::conforms(value, spelt, whole)) FAIL(value.text());
      nulls += value.is_null() && admitted;
      ++judged;
    }
  }
  CHECK(nulls > 300);
  CHECK(judged > 15'000);
}

TEST_CASE("ToolSet with a nullable argument admits its values and null") {
  std::size_t nulls = 0;
  for (unsigned seed = 0; seed < 800; ++seed) {
    Random random(seed);
    const Json argument = random_schema(random, true);
    const Json document{{"name", "f"},
                        {"parameters",
                         {{"type", "object"},
                          {"properties", {{"x", argument}}},
                          {"required", {"x"}},
                          {"$defs", definitions()}}}};
    const ToolSet tools = ToolSet::from_json(document);
    const Json spelt    = without_nullable(document["parameters"]);
    schema::Reader reader(tools[0].parameters, formats::parameter_rules(tools[0]));
    test::FormJudge judge(reader.forms);
    CAPTURE(seed, argument.text(), tools[0].parameters.text());
    for (const Json& value : values()) {
      bool admitted = false;
      try {
        admitted = judge(reader.form(tools[0].parameters, "#"), {{"x", value}});
      } catch (const Error& error) {
        if (error.code() != Errc::unsupported_keyword) FAIL(error.what());
        break;
      }
      if (admitted != slow::conforms({{"x", value}}, spelt, spelt)) FAIL(value.text());
      nulls += value.is_null() && admitted;
    }
  }
  CHECK(nulls > 200);
}

// References lead to places of the document, below a schema with the keyword too.
TEST_CASE("ToolSet with a reference into a nullable schema follows the document's own pointers") {
  const std::vector<std::string> inner = {
      R"("type": "object", "allOf": [{"type": "object"}])",
      R"("type": "object", "not": {"required": ["n"]})",
      R"("allOf": [{"$ref": "#/$defs/open"}])",
      R"("type": "object", "if": {"required": ["n"]}, "then": {"required": ["m"]})",
      R"("$ref": "#/$defs/open")",
      R"("const": {"x": "a"})",
      R"("enum": [{"x": "a"}])",
      R"("type": "object")",
  };
  for (const std::string& keywords : inner) {
    const std::string text = R"({"name": "f", "parameters": {"type": "object", "required": ["y"],
        "$defs": {"open": {"type": "object", "additionalProperties": true},
                  "a": {)" + keywords +
                             R"(, "nullable": true, "additionalProperties": true,
                        "properties": {"x": {"type": "string", "maxLength": 1}}}},
        "properties": {"y": {"$ref": "#/$defs/a/properties/x"}, "z": {"$ref": "#/$defs/a"}}}})";
    CAPTURE(text);
    const Json document = tooldecode::text::parse_json(text);
    const ToolSet tools = ToolSet::from_json(document);
    const Json spelt    = tooldecode::text::parse_json(
        R"({"$defs": {"open": {"type": "object"}, "a": {"anyOf": [{"type": "null"}, {)" + keywords +
        R"(, "properties": {"x": {"type": "string", "maxLength": 1}}}]}},
           "required": ["y"], "additionalProperties": false,
           "properties": {"y": {"type": "string", "maxLength": 1}, "z": {"$ref": "#/$defs/a"}}})");
    schema::Reader reader(tools[0].parameters, formats::parameter_rules(tools[0]));
    test::FormJudge judge(reader.forms);
    std::size_t admitted = 0;
    for (const char* y : {R"("a")", R"("aa")", "null", "1"}) {
      for (const char* z : {"null", R"({})", R"({"x": "a"})", R"({"x": "aa"})", R"({"n": 1})",
                            R"({"n": 1, "m": 1})", R"({"x": 1})", "1", R"("a")"}) {
        const Json value{{"y", tooldecode::text::parse_json(y)},
                         {"z", tooldecode::text::parse_json(z)}};
        const bool expected = slow::conforms(value, spelt, spelt);
        const auto form     = reader.form(tools[0].parameters, tools[0].parameters_pointer);
        if (judge(form, value) != expected) FAIL(value.text());
        admitted += expected ? 1 : 0;
      }
    }
    CHECK(admitted >= 2);
  }
}

TEST_CASE("ToolSet with an error in a nullable schema names a place of the document") {
  for (const char* keywords :
       {R"("allOf": [{"type": "object"}])", R"("not": {"required": ["n"]})",
        R"("$ref": "#/parameters/$defs/open")", R"("if": {"required": ["n"]}, "then": {})",
        R"("const": {"x": "a"})", R"("enum": [{"x": "a"}])", R"("type": "object")"}) {
    for (const char* fault : {R"({"pattern": "("})", R"({"minLength": -1})",
                              R"({"type": "none such"})", R"({"$ref": "#/nowhere"})"}) {
      const Json document = tooldecode::text::parse_json(
          std::string(R"([{"name": "f", "parameters": {"type": "object",
            "$defs": {"open": {}, "a": {)") +
          keywords + R"(, "nullable": true,
                      "properties": {"x": )" +
          fault + R"(}}},
            "properties": {"z": {"$ref": "#/$defs/a"}}}}])");
      CAPTURE(document.text());
      std::string where = "none";
      try {
        const ToolSet tools = ToolSet::from_json(document);
        Grammar grammar;
        SchemaCompiler compiler(grammar, tools[0].parameters,
                                formats::parameter_options(tools[0], {}));
        (void)compiler.value(tools[0].parameters, tools[0].parameters_pointer);
      } catch (const Error& error) {
        where = error.where();
      }
      REQUIRE(where.starts_with("#/0/parameters/"));
      CHECK(document.find_at(where.substr(1)) != nullptr);
    }
  }
}
