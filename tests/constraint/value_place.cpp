#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/value_place.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using tooldecode::constraint::schemas_at;
using tooldecode::constraint::ValuePlace;

TEST_CASE("ValuePlace::after points to the value that a text stops in") {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"", ""},
      {"12", ""},
      {"{", ""},
      {R"({"a)", ""},
      {R"({"a")", ""},
      {R"({"a":)", "/a"},
      {R"({"a": 1)", "/a"},
      {R"({"a": 1 )", ""},
      {R"({"a": 1, )", ""},
      {R"({"a": "x)", "/a"},
      {R"({"a": "x")", ""},
      {R"({"a": "}],:{", "b": )", "/b"},
      {R"({"a/b~\u0063": tr)", "/a~1b~0c"},
      {R"({"\"": )", "/\""},
      {R"({'a': 'x', 'b': 'it"s)", "/b"},
      {"[", "/0"},
      {"[1", "/0"},
      {"[1 ", ""},
      {"[1,", "/1"},
      {"[[], {}, ", "/2"},
      {"[[1, 2], [3, ", "/1/1"},
      {R"([{"a": [{"b": {"c": 5}}, {"b": )", "/0/a/1/b"},
      {R"({"a": {"b": 1})", ""},
      {R"({"o": {"a": "x")", "/o"},
      {R"({"a": [true)", "/a/0"},
      {R"({"a": [true])", ""},
  };
  for (const auto& [text, pointer] : cases) {
    INFO(text);
    CHECK(ValuePlace::after(text).pointer() == pointer);
  }
}

TEST_CASE("schemas_at leads through references and compositions to the innermost subschemas") {
  const JsonValue schema = text::parse_json(R"({
    "properties": {"a": {"type": "integer"}, "list": {"prefixItems": [{"type": "null"}],
      "items": {"$ref": "#/$defs/item"}}, "old": {"items": [{"type": "null"}]}},
    "patternProperties": {"^x": {"type": "string"}, "^a$": {"minimum": 3}},
    "additionalProperties": {"properties": {"deep": true}},
    "anyOf": [{"properties": {"a": {"maximum": 5}}}, {"required": ["a"]}],
    "$defs": {"item": {"allOf": [{"properties": {"next": {"$ref": "#/$defs/item"}}}, {"minProperties": 1}]},
              "loop": {"$ref": "#/$defs/loop"}}})");
  using Pointers         = std::vector<std::string>;
  const std::vector<std::pair<std::string_view, Pointers>> cases{
      {"", {"#"}},
      {R"({"a": )", {"#/anyOf/0/properties/a", "#/properties/a", "#/patternProperties/^a$"}},
      {R"({"xy": )", {"#/patternProperties/^x"}},
      {R"({"z": )", {"#/additionalProperties"}},
      {R"({"z": {"deep": [)", {"#/additionalProperties/properties/deep"}},
      {R"({"list": [)", {"#/properties/list/prefixItems/0"}},
      {R"({"list": [null, )", {"#/$defs/item"}},
      {R"({"list": [null, {"next": {"next": )", {"#/$defs/item"}},
      {R"({"old": [null, )", {"#/properties/old"}},
  };
  for (const auto& [text, pointers] : cases) {
    INFO(text);
    CHECK(schemas_at(ValuePlace::after(text), schema) == pointers);
  }
  CHECK(schemas_at(ValuePlace::after("[1"), true) == Pointers{"#"});
}
