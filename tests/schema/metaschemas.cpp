#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/metaschemas.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using Json = tooldecode::JsonValue;

namespace {

grammar::Automaton compiled(const std::string& schema) {
  const Json root = tooldecode::text::parse_json(schema);
  Grammar grammar;
  const NodeId value = SchemaCompiler(grammar, root, {.every_spelling = true}).value(root, "#");
  return grammar::Automaton(std::move(grammar), value);
}

using test::accepts;

}  // namespace

TEST_CASE("metaschemas have the drafts and the identifiers under which they are known") {
  CHECK(metaschemas().size() == 17);
  for (const auto& [uri, document] : metaschemas()) {
    INFO(uri);
    CHECK(find_draft(document["$schema"].string()));
    const std::string& name = document["$id"].string();
    CHECK((name == uri || name == uri + '#'));
  }
}

TEST_CASE("metaschemas are the schemas that a reference names, and those that they name") {
  for (const char* uri :
       {"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema"}) {
    INFO(uri);
    const auto schemas   = compiled(R"({"type": "object", "properties": {"schema": {"$ref": ")" +
                                    std::string(uri) + R"("}}, "required": ["schema"]})");
    const auto is_schema = [&](const std::string& text) {
      return accepts(schemas, R"({"schema": )" + text + '}');
    };
    for (const char* good :
         {"true", "{}", R"({"type": ["string", "null"], "pattern": "^a{1,3}$", "other": 1})",
          R"({"properties": {"a": {"items": {"minLength": 3}}}, "required": ["a", "b"]})",
          R"({"anyOf": [{"$ref": "#/definitions/a"}, false], "definitions": {"a": {"enum": [1]}}})",
          R"({"readOnly": true, "writeOnly": false})",
          R"({"minimum": -1.5, "uniqueItems": true, "const": {"type": 3}, "not": {"not": {}}})"}) {
      INFO(good);
      CHECK(is_schema(good));
    }
    for (const char* bad :
         {"1", R"({"type": "str"})", R"({"type": []})", R"({"type": ["null", "null"]})",
          R"({"properties": {"a": {"items": {"minLength": -3}}}})", R"({"required": ["a", "a"]})",
          R"({"anyOf": []})", R"({"not": {"not": {"maximum": "1"}}})",
          R"({"patternProperties": {"a": 1}})", R"({"writeOnly": 1})",
          R"({"dependencies": {"a": [1]}})"}) {
      INFO(bad);
      CHECK_FALSE(is_schema(bad));
    }
  }
}

TEST_CASE("metaschemas are found by a dynamic reference too") {
  for (const char* reference : {"https://json-schema.org/draft/2020-12/schema",
                                "https://json-schema.org/draft/2020-12/schema#meta"}) {
    INFO(reference);
    const auto schemas = compiled(R"({"$dynamicRef": ")" + std::string(reference) + R"("})");
    CHECK(accepts(schemas, R"({"items": {"type": "string"}})"));
    CHECK_FALSE(accepts(schemas, R"({"items": {"type": 5}})"));
  }
}

TEST_CASE("metaschemas give way to the caller's document of the same URI") {
  const std::map<std::string, Json> documents{
      {"http://json-schema.org/draft-07/schema",
       tooldecode::text::parse_json(R"({"type": "null"})")}};
  const Json root =
      tooldecode::text::parse_json(R"({"$ref": "http://json-schema.org/draft-07/schema#"})");
  Grammar grammar;
  const NodeId value =
      SchemaCompiler(grammar, root, {.rules = {.documents = documents}}).value(root, "#");
  const grammar::Automaton values(std::move(grammar), value);
  CHECK(accepts(values, "null"));
  CHECK_FALSE(accepts(values, "true"));
}
