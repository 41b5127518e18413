#include <string>
#include <string_view>

#include <tooldecode/grammar/schema_values.hpp>

#include <support/catch.hpp>
#include <support/slow_matcher.hpp>

using namespace tooldecode;
using Json = nlohmann::ordered_json;

namespace {

struct Values {
  explicit Values(const char* schema, ValueSyntax syntax = ValueSyntax::json)
      : root(Json::parse(schema)),
        reader(root),
        text(grammar, syntax, 0),
        values(grammar, reader, text, false),
        node(values.value(reader.form(root, "#"))) {}
  bool accepts(std::string_view bytes) const { return slow::matches(grammar, node, bytes); }

  Json root;
  Grammar grammar;
  SchemaReader reader;
  SchemaText text;
  SchemaValues values;
  NodeId node;
};

}  // namespace

TEST_CASE("Equal schemas in different places are one node") {
  const Values values(R"({"type": "array", "prefixItems": [
      {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}},
      {"properties": {"a": {"minimum": 3, "title": "the same", "type": "integer"}}, "type": "object"}
      ]})");
  const auto& grammar = values.grammar;
  int sets            = 0;
  for (NodeId id = 0; id < grammar.size(); ++id) {
    sets += grammar[id].kind == Grammar::Kind::keyed_set ? 1 : 0;
  }
  CHECK(sets == 2);  // theirs, and that of any value
}

TEST_CASE("Items that do not repeat, where they can be listed") {
  const Values values(R"({"type": "array", "items": {"enum": [1, "a", null]}, "uniqueItems": true,
                          "minItems": 2})");
  CHECK(values.accepts(R"([1, "a"])"));
  CHECK(values.accepts(R"([null, "a", 1.0])"));
  CHECK_FALSE(values.accepts(R"([1, 1.0])"));
  CHECK_FALSE(values.accepts(R"(["a"])"));
}

TEST_CASE("Constant objects have any order of keys") {
  const Values values(R"({"const": {"a": [1], "b": {}}})");
  CHECK(values.accepts(R"({"b": {}, "a": [1]})"));
  CHECK(values.accepts(R"({"a": [1.0], "b": {}})"));
  CHECK_FALSE(values.accepts(R"({"a": [1], "b": {}, "c": 1})"));
}

TEST_CASE("A further key is never a member spelt otherwise") {
  const char* schema = R"({"type": "object", "properties": {"éé": {"type": "null"}}})";
  for (const ValueSyntax syntax : {ValueSyntax::json, ValueSyntax::python}) {
    const Values values(schema, syntax);
    const bool json = syntax == ValueSyntax::json;
    CHECK(values.accepts(json ? R"({"\u00e9\u00e9": null})" : R"({'\xe9\xe9': None})"));
    CHECK_FALSE(values.accepts(json ? R"({"é\u00e9": 1})" : R"({'é\xe9': 1})"));
    CHECK_FALSE(values.accepts(json ? R"({"éé": 1})" : R"({'éé': 1})"));
    CHECK(values.accepts(json ? R"({"é\u00e8": 1})" : R"({'é\xe8': 1})"));
  }
}

TEST_CASE("Counts, dependences and classes of keys") {
  const Values values(R"({"type": "object", "minProperties": 1, "maxProperties": 3,
      "dependentRequired": {"a": ["b"]}, "patternProperties": {"^x": {"type": "integer"}},
      "additionalProperties": {"type": "string"}})");
  CHECK_FALSE(values.accepts("{}"));
  CHECK(values.accepts(R"({"x1": 1})"));
  CHECK_FALSE(values.accepts(R"({"x1": "1"})"));
  CHECK(values.accepts(R"({"y": "1"})"));
  CHECK_FALSE(values.accepts(R"({"a": "1"})"));
  CHECK(values.accepts(R"({"b": "1", "a": "1"})"));
  CHECK_FALSE(values.accepts(R"({"b": "", "a": "", "c": "", "d": ""})"));
}
