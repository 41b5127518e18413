#include <cstddef>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/document_readings.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/unenforced_tool.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using tools::Reading;
using Json = JsonValue;

namespace {

ToolSet one_tool(const std::string& parameters) {
  return ToolSet::parse(R"([{"name": "f", "parameters": )" + parameters + "}]");
}

std::optional<tools::UnenforcedTool> widened(const std::string& parameters,
                                             const std::string& place) {
  return tools::widened_tool(one_tool(parameters)[0],
                             Error(Errc::unsupported_keyword, "#/0/parameters" + place, "why"));
}

// The pointers of all values in a document.
void add_pointers(const Json& value, const std::string& at, std::vector<std::string>& all) {
  if (!at.empty()) all.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      add_pointers(member, text::extend_pointer(at, key), all);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      add_pointers(value[i], text::extend_pointer(at, std::to_string(i)), all);
    }
  }
}

std::vector<bool> accepted(const ToolSet& tools, const std::vector<Json>& values) {
  const ToolCallFSM calls{
      test::byte_vocabulary(), tools, JsonCall::hermes(), {.choice = ToolChoice::required}};
  std::vector<bool> verdicts;
  for (const Json& value : values) {
    const ToolCall call{.name = "f", .arguments = value};
    verdicts.push_back(!calls.find_refusal(calls.write({&call, 1})));
  }
  return verdicts;
}

}  // namespace

TEST_CASE("widened_tool takes out a keyword and keeps the rest of its schema") {
  const auto some = widened(
      R"({"type": "object", "properties": {"a": {"type": "string", "pattern": "a", "maxLength": 3}}})",
      "/properties/a/pattern");
  REQUIRE(some);
  CHECK(some->tool.parameters.at("properties").at("a") ==
        Json{{"type", "string"}, {"maxLength", 3}});
  CHECK(documented_parameters(some->tool).at("properties").at("a").contains("pattern"));
  CHECK(some->note.reading == Reading::widened_schema);
  CHECK(some->note.tool == "f");
  CHECK(some->note.pointer == "#/0/parameters/properties/a/pattern");
  CHECK(some->note.text == "\"pattern\" is not enforced: #/0/parameters/properties/a/pattern: why");
}

TEST_CASE("widened_tool replaces the innermost schema of a value where a keyword has to stay") {
  const std::string schema =
      R"({"type": "object", "properties": {"a": {"anyOf": [{"properties": {"x/y": {"allOf": [{}]}}}]}}})";
  const auto some = widened(schema, "/properties/a/anyOf/0/properties/x~1y/allOf");
  REQUIRE(some);
  CHECK(some->tool.parameters.at("properties").at("a").at("anyOf").at(0).at("properties") ==
        Json{{"x/y", Json::object()}});
  CHECK(some->note.text.starts_with(
      "any value is allowed at /properties/a/anyOf/0/properties/x~1y: "));
  const auto outer = widened(schema, "/properties/a/anyOf/0");
  REQUIRE(outer);
  CHECK(outer->tool.parameters.at("properties") == Json{{"a", Json::object()}});
}

TEST_CASE("widened_tool gives nullopt where no value inside can be widened") {
  const std::string schema =
      R"({"type": "object", "properties": {"a": {}}, "not": {"properties": {"a": {"pattern": "a"}}}})";
  CHECK_FALSE(widened(schema, "/not/properties/a/pattern"));
  CHECK_FALSE(widened(schema, "/properties/a"));  // admits all values
  CHECK_FALSE(widened(schema, "/properties/b"));
  CHECK_FALSE(widened(schema, "/type"));
  CHECK_FALSE(widened(schema, ""));
  // What a test refers to must not admit more.
  CHECK_FALSE(widened(
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"not": {"$ref": "#/$defs/A"}}},
          "$defs": {"A": {"type": "string", "pattern": "a"}}})",
      "/$defs/A/pattern"));
}

TEST_CASE("widened_tool accepts whatever the tool accepted, at every place of a schema") {
  const char* const schemas[] = {
      R"({"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "string"}},
          "required": ["a"], "minProperties": 1})",
      R"({"type": "object", "properties": {"a": {"anyOf": [{"type": "integer", "minimum": 2},
          {"type": "object", "properties": {"x": {"const": 1}}}]}}})",
      R"({"type": "object", "properties": {"a": {"not": {"type": "integer", "minimum": 2}},
          "b": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}}})",
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}},
          "$defs": {"A": {"type": "object", "properties": {"x": {"type": "integer"}}}}})",
      R"({"type": "object", "allOf": [{"properties": {"a": {"type": "integer"}}},
          {"properties": {"b": {"type": "string", "maxLength": 1}}, "required": ["b"]}]})",
      R"({"type": "object", "patternProperties": {"^a": {"type": "integer"}},
          "additionalProperties": {"type": "string"}, "propertyNames": {"maxLength": 1}})",
      R"({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"},
          "prefixItems": [{"type": "string"}], "contains": {"const": 2}, "maxContains": 1}}})",
      R"({"type": "object", "properties": {"a": {"type": "integer"}}, "if": {"properties":
          {"a": {"const": 1}}}, "then": {"properties": {"b": {"const": "s"}}}, "else": {}})",
      R"({"type": "object", "properties": {"a": {"type": "integer"}}, "anyOf": [{"properties":
          {"b": {"type": "string"}}}, {"required": ["a"]}], "unevaluatedProperties": false})",
  };
  std::vector<Json> inner = {1,
                             2,
                             "s",
                             "long",
                             nullptr,
                             Json::array(),
                             Json::array({"s", 2}),
                             Json::array({"s", 2, 2}),
                             {{"x", 1}},
                             {{"y", 1}},
                             Json::object()};
  std::vector<Json> values{Json::object(), {{"c", 1}}, {{"ab", 1}}};
  for (const Json& a : inner) {
    values.push_back({{"a", a}});
    values.push_back({{"b", a}});
    for (const Json& b : inner) values.push_back({{"a", a}, {"b", b}});
  }
  std::size_t places = 0, more = 0;
  for (const char* schema : schemas) {
    const ToolSet tools = one_tool(schema);
    const auto before   = accepted(tools, values);
    std::vector<std::string> pointers;
    add_pointers(tools[0].parameters, "", pointers);
    for (const std::string& pointer : pointers) {
      INFO(schema << " at " << pointer);
      const auto some = widened(schema, pointer);
      if (!some) continue;
      ++places;
      const auto after = accepted(
          tools.replaced({std::make_shared<const Tool>(some->tool)}, {&some->note, 1}), values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        INFO(text::write_json(values[i]));
        REQUIRE((after[i] || !before[i]));
        more += after[i] && !before[i] ? 1 : 0;
      }
    }
  }
  CHECK(places > 50);
  CHECK(more > 500);
}

TEST_CASE("with_any_arguments admits any object and keeps the documented schema for the model") {
  const ToolSet tools = one_tool(R"({"type": "object", "properties": {"a": {"type": "integer"}}})");
  const auto some     = tools::with_any_arguments(tools[0], Error(Errc::limit_exceeded, "", "why"));
  CHECK(documented_parameters(some.tool) == tools[0].parameters);
  CHECK(some.note.reading == Reading::any_arguments);
  CHECK(some.note.pointer == "#/0/parameters");
  CHECK(some.note.text == "any object is allowed as arguments: why");
  const ToolSet open = tools.replaced({std::make_shared<const Tool>(some.tool)}, {&some.note, 1});
  CHECK(accepted(open, {{{"a", "s"}}, {{"b", 1}}}) == std::vector{true, true});
  CHECK(accepted(tools, {{{"a", "s"}}, {{"b", 1}}}) == std::vector{false, false});
}

TEST_CASE("with_any_arguments admits any text to a custom tool") {
  const ToolSet tools = ToolSet::parse(
      R"([{"type": "custom", "name": "f", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}}])");
  const auto some = tools::with_any_arguments(tools[0], Error(Errc::limit_exceeded, "", "why"));
  CHECK(some.tool.parameters.at("properties").at("input") == Json{{"type", "string"}});
  CHECK(some.note.text == "any text is allowed as input: why");
}
