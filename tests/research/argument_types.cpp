#include <array>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/research/argument_types.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

const ToolSet& documents() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "book", "description": "Books.", "annotations": {"readOnlyHint": true}, "inputSchema": {
      "type": "object",
      "properties": {
        "city":  {"type": "string", "maxLength": 3, "enum": ["Rom", "Ulm"]},
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        "sort":  {"enum": ["up", 1, 1.5, null]},
        "from":  {"$ref": "#/$defs/day"},
        "days":  {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        "size":  {"anyOf": [{"type": "boolean"}, {"const": {"a": 1}}]},
        "odd":   {"oneOf": [{"type": "boolean"}, {"minimum": 1}]}},
      "required": ["stars", "city"],
      "$defs": {"day": {"type": ["string", "null"], "pattern": "^[0-9]+$"}}}},
    {"name": "stop"}])");
  return set;
}

ToolCallFSM constrain(const ToolSet& set) {
  static const Vocabulary bytes = test::byte_vocabulary();
  static const VocabularyIndex masks{bytes};
  return {masks, set, JsonCall::bare(), {.choice = ToolChoice::required}};
}

bool accepts(const ToolCallFSM& calls, const std::string& arguments) {
  const std::string text = R"({"name": "book", "arguments": )" + arguments + "}";
  const auto state       = calls.advance_bytes(calls.initial(), text);
  return state && calls.is_accepting(*state);
}

}  // namespace

TEST_CASE(
    "with_types_only leaves each argument's type of its schema, and the tool's other fields") {
  const ToolSet types = with_types_only(documents());
  REQUIRE(types.size() == 2);
  const Tool& tool = types[0];
  CHECK(tool.name == "book");
  CHECK(tool.description == "Books.");
  CHECK(tool.read_only);
  CHECK_FALSE(types[1].read_only);
  CHECK(argument_names(tool) == argument_names(documents()[0]));
  CHECK(required_names(tool) == required_names(documents()[0]));
  const Json& properties = tool.parameters["properties"];
  const auto types_of    = [&](const char* key) {
    std::vector<std::string> found;
    if (!properties[key].contains("type")) return found;
    const Json listed = properties[key]["type"];
    if (listed.is_string()) return std::vector{listed.get<std::string>()};
    return listed.get<std::vector<std::string>>();
  };
  using Types = std::vector<std::string>;
  CHECK(types_of("city") == Types{"string"});
  CHECK(types_of("stars") == Types{"integer"});
  CHECK(types_of("sort") == Types{"integer", "null", "number", "string"});
  CHECK(types_of("from") == Types{"null", "string"});
  CHECK(types_of("days") == Types{"array"});
  CHECK(types_of("size") == Types{"boolean", "object"});
  CHECK(types_of("odd").empty());
  for (const auto& [key, schema] : properties.items()) {
    CAPTURE(key);
    CHECK(schema.size() == (types_of(key.c_str()).empty() ? 0 : 1));
  }
}

TEST_CASE("with_types_only of a reference that is cyclic or unresolved leaves no type") {
  const ToolSet set =
      ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", "properties": {
    "a": {"$ref": "#/properties/a"}, "b": {"$ref": "#/nowhere"}, "c": {"$ref": "other.json"}}}}])");
  const ToolSet types = with_types_only(set);
  for (const char* key : {"a", "b", "c"}) {
    CAPTURE(key);
    CHECK(types[0].parameters["properties"][key] == Json::object());
  }
}

TEST_CASE("with_types_only lets a constraint check names, keys and types, and nothing else") {
  const ToolCallFSM whole = constrain(documents());
  const ToolCallFSM types = constrain(with_types_only(documents()));
  // Arguments, and whether they conform to the schema, and to its types.
  const std::vector<std::pair<std::string, std::array<bool, 2>>> cases{
      {R"({"city": "Rom", "stars": 5})", {true, true}},
      {R"({"city": "Paris", "stars": 5})", {false, true}},
      {R"({"city": "Rom", "stars": 6})", {false, true}},
      {R"({"city": "Rom", "stars": 5, "days": ["x"]})", {false, true}},
      {R"({"city": "Rom", "stars": 5, "from": "x"})", {false, true}},
      {R"({"city": 1, "stars": 5})", {false, false}},
      {R"({"city": "Rom", "stars": 1.5})", {false, false}},
      {R"({"city": "Rom"})", {false, false}},
      {R"({"city": "Rom", "stars": 5, "other": 1})", {false, false}},
      {R"({"city": "Rom", "stars": 5, "from": 1})", {false, false}}};
  for (const auto& [arguments, expected] : cases) {
    CAPTURE(arguments);
    CHECK(accepts(whole, arguments) == expected[0]);
    CHECK(accepts(types, arguments) == expected[1]);
  }
}

TEST_CASE("with_types_only of a tool that is not strict keeps types as documentation alone") {
  const ToolSet tools = ToolSet::parse(R"({"name": "f", "strict": false, "parameters": {
      "type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}}})");
  const ToolSet types = with_types_only(tools);
  CHECK_FALSE(types[0].strict);
  CHECK(types[0].parameters["properties"]["a"] == Json::object());
  CHECK(documented_parameters(types[0])["properties"]["a"] ==
        tooldecode::text::parse_json(R"({"type": ["integer"]})"));
}
