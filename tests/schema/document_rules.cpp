#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/document_rules.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

std::string refusal(const Json& document, const schema::DocumentRules& rules) {
  try {
    Grammar grammar;
    SchemaCompiler compiler(grammar, document, {.rules = rules});
    (void)compiler.value(document, "#");
  } catch (const Error& error) {
    return std::string(name(error.code())) + " " + error.where();
  }
  return "taken";
}

}  // namespace

TEST_CASE("SchemaCompiler refuses a keyword that it cannot enforce, with its place") {
  const Json document = tooldecode::text::parse_json(
      R"({"properties": {"a": {"type": "array", "uniqueItems": true}, "b": {"type": "string"}}})");
  CHECK(refusal(document, {}) == "unsupported_keyword #/properties/a/uniqueItems");
}

TEST_CASE("SchemaCompiler follows references to the documents of the rules") {
  const Json document = tooldecode::text::parse_json(R"({"$ref": "http://h/other#/$defs/x"})");
  CHECK(refusal(document, {}) != "taken");
  schema::DocumentRules rules;
  rules.documents["http://h/other"] =
      tooldecode::text::parse_json(R"({"$defs": {"x": {"const": 1}}})");
  CHECK(refusal(document, rules) == "taken");
}

TEST_CASE("SchemaCompiler reads nullable only if the rules enable it") {
  const Json document = tooldecode::text::parse_json(
      R"({"type": "null", "not": {"nullable": true, "type": "string"}})");
  CHECK(refusal(document, {}) == "taken");
  CHECK(refusal(document, {.nullable = true}) == "unsatisfiable_schema #");
}

TEST_CASE("SchemaCompiler uses the draft of the rules if the document names none") {
  const Json document = tooldecode::text::parse_json(
      R"({"$ref": "#/$defs/x", "minimum": "none", "$defs": {"x": {"const": 1}}})");
  CHECK(refusal(document, {.draft = schema::SchemaDraft::draft7}) ==
        "taken");  // its siblings are ignored
  CHECK(refusal(document, {}) == "malformed_schema #/minimum");
}
