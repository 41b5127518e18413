#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/document_readings.hpp>

#include <support/catch.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

// A schema read as property "p" of a call's parameters, with the notes.
struct Read {
  Json schema;
  std::vector<Note> notes;
};

Read read_property(std::string_view schema, LenientReadings lenient = {}) {
  Read result;
  Json parameters{{"type", "object"},
                  {"properties", {{"p", tooldecode::text::parse_json(schema)}}},
                  {"additionalProperties", false}};
  result.schema =
      DocumentReader("f", result.notes, lenient).parameters(parameters, "#")["properties"]["p"];
  return result;
}

std::vector<Reading> readings_of(const std::vector<Note>& notes) {
  std::vector<Reading> readings;
  for (const Note& note : notes) readings.push_back(note.reading);
  return readings;
}

Read read_parameters(std::string_view schema) {
  Read result;
  result.schema =
      DocumentReader("f", result.notes).parameters(tooldecode::text::parse_json(schema), "#");
  return result;
}

bool same(const Json& a, std::string_view b) {
  return canonical_json(a) == canonical_json(tooldecode::text::parse_json(b));
}

// Calls a function with each schema of up to three of some members.
void for_each_small_schema(const std::function<void(const Json&)>& use) {
  static const Json members = tooldecode::text::parse_json(R"JSON({
    "type": ["string", "integer", "number", "boolean", "array", "object", "null", "String", "int",
             "any", "list(int)", "text", null, 5, [], ["string", "null"], ["int", "integer"],
             ["object", "array"]],
    "description": ["d", null, 5],
    "title": ["t", {"type": "dict"}],
    "Title": ["t"],
    "nullable": [true, false],
    "default": [null, "a"],
    "enum": [["a", 1], [null], null],
    "optional": [true],
    "required": [true, ["a"], null],
    "properties": [null, {}, {"a": {"type": "str", "required": true}}],
    "additionalProperties": [false, null],
    "items": [null, {"type": "int"}],
    "minimum": ["1", 1],
    "anyOf": [[{"type": "null"}, {"type": "int", "nullable": true}]],
    "format": ["date", "dates"],
    "minLenght": [1]
  })JSON");
  const std::function<void(std::size_t, std::size_t, Json)> grow =
      [&](std::size_t first, std::size_t left, Json schema) {
        use(schema);
        for (std::size_t i = first; left > 0 && i < members.size(); ++i) {
          const auto& [key, values] = members.items()[i];
          for (const Json& value : values) {
            Json more = schema;
            more[key] = value;
            grow(i + 1, left - 1, std::move(more));
          }
        }
      };
  grow(0, 3, Json::object());
}

// Where a schema may stand inside of another.
const std::vector<std::string>& places() {
  static const std::vector<std::string> all = {
      R"("HERE")",
      R"({"type": "object", "properties": {"p": "HERE"}, "additionalProperties": false})",
      R"({"type": "object", "properties": {"p": {"anyOf": [true, "HERE"]}}})",
      R"({"type": "object", "properties": {"p": {"items": "HERE", "not": {}}}})",
      R"({"type": "object", "additionalProperties": "HERE"})",
      R"({"type": "object", "$defs": {"d": "HERE"}, "$ref": "#/$defs/d"})",
      R"({"type": "object", "properties": {"p": {"not": "HERE"}}})",
  };
  return all;
}

Json put(const Json& at, const Json& schema) {
  if (at == "HERE") return schema;
  Json result = at;
  if (at.is_structured()) {
    for (Json& one : result) one = put(one, schema);
  }
  return result;
}

Json without_comments(Json schema) {
  if (schema.is_object()) schema.erase("$comment");
  if (schema.is_structured()) {
    for (Json& one : schema) one = without_comments(std::move(one));
  }
  return schema;
}

// What is made of parameters: the schema, its notes without their sentences, or the error.
std::string made_of(const Json& parameters) {
  std::vector<Note> notes;
  std::string text;
  try {
    text = without_comments(DocumentReader("f", notes).parameters(parameters, "#")).text();
  } catch (const Error& error) {
    text = std::string(name(error.code())) + error.where();
  }
  for (const Note& note : notes) {
    text += '\n' + std::to_string(static_cast<int>(note.reading)) + note.pointer;
  }
  return text;
}

}  // namespace

TEST_CASE("DocumentReader rewrites a document, one reading at a time") {
  struct Row {
    std::string document, schema;
    std::vector<Reading> readings;
  };
  const std::vector<Row> rows = {
      // nothing to rewrite
      {R"({"type": "string", "enum": ["a"], "default": "a"})",
       R"({"type": "string", "enum": ["a"], "default": "a"})",
       {}},
      {R"({"type": "object"})", R"({"type": "object"})", {}},
      {R"({"type": "object", "properties": {}})", R"({"type": "object", "properties": {}})", {}},
      {R"({"type": "integer", "enum": [1, 2.0]})", R"({"type": "integer", "enum": [1, 2.0]})", {}},
      {R"({"type": ["string", "null"], "default": null})",
       R"({"type": ["string", "null"], "default": null})",
       {}},
      {R"({"default": null})", R"({"default": null})", {}},
      {R"({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null})",
       R"({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null})",
       {}},
      {"true", "true", {}},
      {R"({"type": "frobnicate", "x-vendor": 1})", R"({"type": "frobnicate", "x-vendor": 1})", {}},
      // null_keyword
      {R"({"type": "object", "required": null})", R"({"type": "object"})", {Reading::null_keyword}},
      // type_name
      {R"({"type": "dict"})", R"({"type": "object"})", {Reading::type_name}},
      {R"({"type": "float"})", R"({"type": "number"})", {Reading::type_name}},
      {R"({"type": "tuple", "items": {"type": "float"}})",
       R"({"type": "array", "items": {"type": "number"}})",
       {Reading::type_name, Reading::type_name}},
      {R"({"type": "any"})", "{}", {Reading::type_name}},
      {R"({"type": "String"})", R"({"type": "string"})", {Reading::type_name}},
      {R"*({"type": "list(str)"})*",
       R"({"type": "array", "items": {"type": "string"}})",
       {Reading::type_name}},
      {R"({"type": "List[List[int]]"})",
       R"({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})",
       {Reading::type_name}},
      {R"({"type": "json"})", R"({"type": ["object", "array"]})", {Reading::type_name}},
      {R"({"type": ["str", "string", "float"]})",
       R"({"type": ["string", "number"]})",
       {Reading::type_name}},
      // optional_keyword
      {R"({"type": "string", "optional": true})",
       R"({"type": "string"})",
       {Reading::optional_keyword}},
      // number_text
      {R"({"type": "integer", "minimum": "0", "maximum": "9.5"})",
       R"({"type": "integer", "minimum": 0, "maximum": 9.5})",
       {Reading::number_text, Reading::number_text}},
      {R"({"type": "integer", "minimum": "zero"})",
       R"({"type": "integer", "minimum": "zero"})",
       {}},
      // array_enum
      {R"({"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]})",
       R"({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}})",
       {Reading::array_enum}},
      {R"({"type": "array", "enum": ["a", "b"]})",
       R"({"type": "array", "items": {"enum": ["a", "b"]}})",
       {Reading::array_enum}},
      {R"({"type": "array", "enum": [["a"], ["b"]]})",
       R"({"type": "array", "enum": [["a"], ["b"]]})",
       {}},
      // enum_over_type
      {R"({"type": "boolean", "enum": ["True", "False", "dontcare"]})",
       R"({"enum": ["True", "False", "dontcare"]})",
       {Reading::enum_over_type}},
      {R"({"type": "integer", "enum": [1, 1.5]})",
       R"({"enum": [1, 1.5]})",
       {Reading::enum_over_type}},
      {R"({"type": "string", "enum": ["a", null]})",
       R"({"enum": ["a", null]})",
       {Reading::enum_over_type}},
      {R"({"type": "array", "items": {"type": "boolean"}, "enum": ["yes"]})",
       R"({"type": "array", "items": {"enum": ["yes"]}})",
       {Reading::array_enum, Reading::enum_over_type}},
      // nullable
      {R"({"type": "string", "default": null})",
       R"({"type": ["string", "null"], "default": null})",
       {Reading::nullable}},
      {R"({"type": "string", "nullable": true})",
       R"({"type": ["string", "null"]})",
       {Reading::nullable}},
      {R"({"type": "string", "nullable": false})", R"({"type": "string"})", {}},
      {R"({"type": "string", "nullable": null})", R"({"type": "string"})", {Reading::null_keyword}},
      {R"({"type": "string", "enum": ["a"], "default": null})",
       R"({"type": ["string", "null"], "enum": ["a", null], "default": null})",
       {Reading::nullable}},
      {R"({"enum": ["a"], "default": null})",
       R"({"enum": ["a", null], "default": null})",
       {Reading::nullable}},
      {R"({"type": "boolean", "enum": ["True"], "default": null})",
       R"({"enum": ["True", null], "default": null})",
       {Reading::enum_over_type, Reading::nullable}},
      {R"({"$ref": "#/$defs/T", "default": null})",
       R"({"$ref": "#/$defs/T", "default": null, "nullable": true})",
       {Reading::nullable}},
      {R"({"const": 1, "default": null})",
       R"({"const": 1, "default": null, "nullable": true})",
       {Reading::nullable}},
      {R"({"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": true})",
       R"({"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]})",
       {Reading::nullable}},
      {R"({"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": true})",
       R"({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]})",
       {Reading::nullable}},
      {R"({"anyOf": [{"type": "string"}], "const": "a", "$anchor": "q", "nullable": true})",
       R"({"anyOf": [{"type": "string"}], "const": "a", "$anchor": "q", "nullable": true})",
       {Reading::nullable}},
      {R"({"oneOf": [{"type": "string"}, {"type": "null"}], "nullable": true})",
       R"({"oneOf": [{"type": "string"}, {"type": "null"}]})",
       {}},
      // A value may match only one branch of oneOf, but null would match both.
      {R"({"oneOf": [{"enum": ["a", null]}, {"type": "null"}], "nullable": true})",
       R"({"oneOf": [{"enum": ["a", null]}, {"type": "null"}], "nullable": true})",
       {Reading::nullable}},
      // A branch that keeps the keyword admits null.
      {R"({"anyOf": [{"const": 1, "nullable": true}], "nullable": true})",
       R"({"anyOf": [{"const": 1, "nullable": true}]})",
       {Reading::nullable}},
      {R"({"oneOf": [{"const": 1, "nullable": true}, {"const": 2}], "nullable": true})",
       R"({"oneOf": [{"const": 1, "nullable": true}, {"const": 2}]})",
       {Reading::nullable}},
      // closed_object, required_flag, unknown_required
      {R"({"type": "object", "properties": {"a": {}}})",
       R"({"type": "object", "properties": {"a": {}}, "additionalProperties": false})",
       {Reading::closed_object}},
      {R"({"type": "object", "properties": {"a": {}}, "additionalProperties": true})",
       R"({"type": "object", "properties": {"a": {}}, "additionalProperties": true})",
       {}},
      {R"({"type": "object", "properties": {"a": {"required": true}, "b": {"required": false}}})",
       R"({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"],
           "additionalProperties": false})",
       {Reading::required_flag, Reading::required_flag, Reading::closed_object}},
      {R"({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]})",
       R"({"type": "object", "properties": {"a": {}}, "required": ["a"],
           "additionalProperties": false})",
       {Reading::closed_object, Reading::unknown_required}},
      {R"({"type": "object", "required": ["a"]})", R"({"type": "object", "required": ["a"]})", {}},
      {R"({"type": "array", "items": {"type": "string", "required": true}})",
       R"({"type": "array", "items": {"type": "string"}})",
       {Reading::required_flag}},
  };
  for (const Row& row : rows) {
    INFO(row.document);
    const Read read = read_property(row.document, LenientReadings::all());
    INFO(read.schema.text());
    CHECK(same(read.schema, row.schema));
    for (const Note& note : read.notes) {
      CHECK(note.tool == "f");
      CHECK(note.pointer.starts_with("#/properties/p"));
      CHECK_FALSE(note.text.empty());
    }
    CHECK(readings_of(read.notes) == row.readings);
  }
}

TEST_CASE("DocumentReader notes what contradicts JSON Schema without changing its meaning") {
  struct Row {
    std::string document, schema;
    std::vector<Reading> readings;
  };
  const std::vector<Row> rows = {
      {R"({"type": "string", "default": null})",
       R"({"type": "string", "default": null})",
       {Reading::nullable}},
      {R"({"type": "boolean", "enum": ["True"]})",
       R"({"type": "boolean", "enum": ["True"]})",
       {Reading::enum_over_type}},
      {R"({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]})",
       R"({"type": "object", "properties": {"a": {}, "b": true}, "required": ["a", "b"],
           "additionalProperties": false})",
       {Reading::unknown_required, Reading::closed_object}},
      {R"({"properties": {"a": {}}, "required": ["b"], "additionalProperties": false})",
       R"({"properties": {"a": {}}, "required": ["b"], "additionalProperties": false})",
       {}},
      {R"({"type": "string", "minLenght": 1})",
       R"({"type": "string", "minLenght": 1})",
       {Reading::unknown_keyword}},
      {R"({"requierd": ["a"]})", R"({"requierd": ["a"]})", {Reading::unknown_keyword}},
      {R"({"type": "string", "format": "path"})",
       R"({"type": "string", "format": "path"})",
       {Reading::unknown_format}},
      {R"({"type": "string", "format": "date", "example": "x", "x-min": 1, "xml": {}})",
       R"({"type": "string", "format": "date", "example": "x", "x-min": 1, "xml": {}})",
       {}},
  };
  for (const Row& row : rows) {
    INFO(row.document);
    const Read read = read_property(row.document);
    INFO(read.schema.text());
    CHECK(same(read.schema, row.schema));
    CHECK(readings_of(read.notes) == row.readings);
  }
}

TEST_CASE("DocumentReader reads parameters that are a map of properties as an object schema") {
  const Read read = read_parameters(R"({"path": {"type": "string", "required": true},
      "title": {"type": "string"}, "depth": {"description": "how deep", "type": "integer"}})");
  CHECK(same(read.schema, R"({"type": "object", "properties": {"path": {"type": "string"},
      "title": {"type": "string"}, "depth": {"description": "how deep", "type": "integer"}},
      "required": ["path"], "additionalProperties": false})"));
  CHECK(readings_of(read.notes) ==
        std::vector{Reading::property_map, Reading::required_flag, Reading::closed_object});
  for (const char* schema : {R"({"title": "T", "description": "d"})", R"({"$schema": "http://x"})",
                             R"({"x-kind": {"type": "string"}})"}) {
    CHECK(read_parameters(schema).notes.back().reading == Reading::no_arguments);
  }
  // No parameter has this name: it is a schema, with a member that is no keyword.
  const Read open = read_parameters(R"({"additionalProperties": {"type": "string"},
      "returns": {"type": "string", "description": "what it returns"}})");
  CHECK(readings_of(open.notes) == std::vector<Reading>{});
  CHECK(open.schema["additionalProperties"]["type"] == "string");
}

TEST_CASE("DocumentReader applies readings at every depth of a schema") {
  for (const std::string around :
       {R"({"type": "array", "items": $})", R"({"anyOf": [{"type": "null"}, $]})",
        R"({"type": "object", "properties": {"x": $}, "additionalProperties": false})",
        R"({"type": "object", "additionalProperties": $})", R"({"prefixItems": [$]})",
        R"({"items": [$]})", R"({"$defs": {"d": $}})", R"({"definitions": {"d": $}})",
        R"({"patternProperties": {"^x": $}})", R"({"oneOf": [$]})", R"({"not": $})",
        R"({"contains": $})", R"({"propertyNames": $})"}) {
    const auto wrap = [&](const std::string& inner) {
      std::string text = around;
      return text.replace(text.find('$', text.find("$defs") == std::string::npos ? 0 : 12), 1,
                          inner);
    };
    const Read read =
        read_property(wrap(R"({"type": "float", "default": null})"), LenientReadings::all());
    INFO(around << read.schema.text());
    CHECK(same(read.schema, wrap(R"({"type": ["number", "null"], "default": null})")));
    CHECK(read.notes.size() == 2);
  }
}

TEST_CASE(
    "DocumentReader reads maps of properties with keywords' names, and a list of required ones") {
  const auto read = [](const std::string& parameters) {
    return read_parameters(parameters).schema;
  };
  const auto names = [&](const std::string& parameters) {
    std::vector<std::string> found;
    const auto schema = read(parameters);
    for (const auto& [name, value] : schema["properties"].items()) found.push_back(name);
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(names(R"({"items": {"type": "array", "items": {"type": "string"}},
                  "user": {"type": "string"}})") == Names{"items", "user"});
  CHECK(names(R"({"if": {"type": "string"}, "contains": {"type": "string"},
                  "city": {"description": "a city"}})") == Names{"if", "contains", "city"});
  const std::string listed = R"({"city": {"type": "string"}, "required": ["city"]})";
  CHECK(names(listed) == Names{"city"});
  CHECK(read(listed)["required"].text() == R"(["city"])");
  // Schemas stay schemas.
  CHECK(names(R"({"properties": {"a": {"type": "string"}}, "required": ["a"],
                  "note": {"type": "string"}})") == Names{"a"});
}

TEST_CASE("DocumentReader leaves a property alone that is named like a keyword") {
  const std::string text = R"({"type": "object", "additionalProperties": false, "properties": {
      "default": {"type": "string"}, "enum": {"type": "string"}, "type": {"type": "string"},
      "required": {"type": "boolean"}, "optional": {"type": "string"}, "nullable": {"type": "string"},
      "properties": {"type": "string"}, "items": {"type": "string"}, "$ref": {"type": "string"},
      "allOf": {"type": "string"}, "minimum": {"type": "string"}}, "required": ["required"]})";
  const Read read        = read_parameters(text);
  CHECK(same(read.schema, text));
  CHECK(read.notes.empty());
}

TEST_CASE("DocumentReader leaves values such as enum, const and default alone") {
  const std::string text =
      R"({"type": "object", "default": {"optional": 1, "type": "dict"},
          "enum": [{"type": "dict"}], "const": {"type": "dict"}, "examples": [{"type": "dict"}]})";
  CHECK(same(read_property(text).schema, text));
}

TEST_CASE("DocumentReader of parameters without properties allows no arguments") {
  const std::string none = R"({"type": "object", "properties": {}, "additionalProperties": false})";
  for (const std::string text :
       {"{}", R"({"type": "object"})", R"({"type": "dict"})", R"({"properties": {}})",
        R"({"type": "object", "properties": null})", R"({"type": ["object", "null"]})"}) {
    const Read read = read_parameters(text);
    CHECK(same(read.schema, none));
    CHECK(read.notes.back().reading == Reading::no_arguments);
  }
  for (
      const std::string text :
      {R"({"type": "object", "required": ["a"]})", R"({"type": "object", "minProperties": 1})",
       R"({"type": "object", "propertyNames": {"enum": ["a"]}})",
       R"({"type": "object", "additionalProperties": true})",
       R"({"type": "object", "additionalProperties": {"type": "string"}})",
       R"({"type": "object", "patternProperties": {"^x": {"type": "string"}}})",
       R"({"type": "object", "$ref": "#/$defs/A"})",
       R"({"type": "object", "anyOf": [{"properties": {"a": {}}, "additionalProperties": false}]})"}) {
    const Read read = read_parameters(text);
    CHECK(same(read.schema, text));
    CHECK(read.notes.empty());
  }
}

TEST_CASE("DocumentReader leaves objects in several parts to the schema compiler to close") {
  for (
      const std::string text :
      {R"({"type": "object", "properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]})",
       R"({"type": "object", "allOf": [{"properties": {"o": {"properties": {"a": {}}}}}]})",
       R"({"type": "object", "properties": {"o": {"properties": {"a": {}}}}, "if": {"required": ["o"]}})",
       R"({"type": "object", "properties": {"a": {"properties": {"x": {}}},
            "b": {"$ref": "#/properties/a"}}})"}) {
    const Read read = read_parameters(text);
    CHECK(same(read.schema, text));
    CHECK(read.notes.front().reading == Reading::closed_object);
  }
  // Conditions do not close objects and leave no note.
  const Read test = read_parameters(
      R"({"type": "object", "not": {"properties": {"a": {"properties": {"b": {}}}}}})");
  CHECK(test.notes.empty());
}

TEST_CASE("DocumentReader of a document that cannot be read throws with the error's place") {
  const auto error = [](std::string_view text) {
    try {
      static_cast<void>(read_parameters(text));
    } catch (const Error& e) {
      return std::string(name(e.code())) + " " + e.where();
    }
    return std::string("none");
  };
  CHECK(error("[]") == "malformed_document #");
  CHECK(error("true") == "malformed_document #");
  CHECK(error(R"({"type": "string"})") == "malformed_document #/type");
  CHECK(error(R"({"type": "any"})") == "malformed_document #/type");
  CHECK(error(R"({"type": 5})") == "malformed_document #/type");
  CHECK(error(R"({"properties": {"a/b~": "string"}})") == "malformed_schema #/properties/a~1b~0");
  CHECK(error(R"({"path": "string"})") == "malformed_document #/path");
  CHECK(error(R"({"path": {"type": "string"}, "size": 5})") == "malformed_document #/size");
  CHECK(error(R"({"properties": {"a": {"items": 5}}})") == "malformed_schema #/properties/a/items");
  CHECK(error(R"({"properties": {"a": {"type": "string", "nullable": "true"}}})") ==
        "malformed_schema #/properties/a/nullable");
  CHECK(error(R"({"type": "object", "nullable": 1})") == "malformed_schema #/nullable");
}

// A schema of nothing but a type, a title and a description is not read keyword by keyword; with a
// comment it is.
TEST_CASE("DocumentReader reads a schema as it reads the schema with a comment") {
  std::size_t schemas = 0;
  for (const std::string& text : places()) {
    const Json place = tooldecode::text::parse_json(text);
    for_each_small_schema([&](const Json& schema) {
      Json commented        = schema;
      commented["$comment"] = "c";
      const std::string a = made_of(put(place, schema)), b = made_of(put(place, commented));
      if (a != b) FAIL(put(place, schema).text() << "\n" << a << "\n" << b);
      ++schemas;
    });
  }
  CHECK(schemas > 10'000);
}

TEST_CASE("DocumentReader leaves the values of a schema as they are where no note says otherwise") {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    0,
                                    1,
                                    1.5,
                                    "",
                                    "a",
                                    Json::array(),
                                    Json::array({1}),
                                    Json::array({"a"}),
                                    Json::object(),
                                    Json{{"a", "b"}},
                                    Json{{"a", 1}},
                                    Json{{"b", 1}}};
  std::size_t compared = 0, rewritten = 0;
  for_each_small_schema([&](const Json& schema) {
    const Json at = tooldecode::text::parse_json(places()[1]);
    std::vector<Note> notes;
    const Json read =
        DocumentReader("f", notes).parameters(put(at, schema), "#")["properties"]["p"];
    // These are about what JSON Schema ignores, or say that nothing is changed.
    const bool is_kept = std::all_of(notes.begin(), notes.end(), [](const Note& note) {
      return note.reading == Reading::unknown_keyword || note.reading == Reading::unknown_format ||
             note.reading == Reading::enum_over_type || note.reading == Reading::optional_keyword;
    });
    if (!is_kept) return;
    ++compared;
    rewritten += read != schema;
    for (const Json& value : values) {
      bool expected = false;
      try {
        expected = slow::conforms(value, schema, schema);
      } catch (const std::exception&) {
        return;  // no schema: the compiler says so
      }
      if (slow::conforms(value, read, read) != expected) {
        FAIL(schema.text() << " as " << read.text() << ": " << value.text());
      }
    }
  });
  CHECK(compared > 500);
  CHECK(rewritten > 50);
}
