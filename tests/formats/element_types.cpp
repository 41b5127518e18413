#include <string>

#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/element_types.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using formats::ElementKind;
using formats::ElementTypes;

TEST_CASE("ElementTypes without a document has every kind") {
  const ElementTypes any;
  CHECK(any.has(ElementKind::text));
  CHECK(any.has_words());
  CHECK(any.member("a").has(ElementKind::array));
  CHECK(any.item(3).has(ElementKind::object));
  CHECK(any.find_word("1") == JsonValue(1));
}

TEST_CASE("ElementTypes of a member or an item has the kinds of all alternatives") {
  const JsonValue schema = parse_json_value(R"({"anyOf": [
    {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}}},
    {"type": "array", "prefixItems": [{"type": "boolean"}], "items": {"type": "string"}}]})");
  schema::Reader reader(schema);
  const ElementTypes types(reader, {reader.form(schema, "#")});
  CHECK(types.has(ElementKind::object));
  CHECK(types.has(ElementKind::array));
  CHECK_FALSE(types.has(ElementKind::text));
  CHECK_FALSE(types.has_words());
  const ElementTypes a = types.member("a");
  CHECK(a.has(ElementKind::text));
  CHECK(a.has(ElementKind::number));
  CHECK_FALSE(a.has(ElementKind::truth));
  CHECK(types.member("b").has(ElementKind::null));
  CHECK(types.item(0).has(ElementKind::truth));
  CHECK_FALSE(types.item(0).has(ElementKind::text));
  CHECK(types.item(1).has(ElementKind::text));
}

TEST_CASE("ElementTypes::find_word and words agree on each text, and with JSON's words") {
  for (const char* type : {R"(["string", "integer"])", R"(["string", "boolean"])",
                           R"(["string", "null"])", R"(["number", "null", "boolean"])"}) {
    CAPTURE(type);
    const JsonValue schema = parse_json_value(R"({"type": )" + std::string(type) + "}");
    schema::Reader reader(schema);
    const ElementTypes types(reader, {reader.form(schema, "#")});
    const text::TextDfa words = types.words();
    for (const std::string text : {"",      " ",    "7",
                                   " 7\n",  "-0",   "01",
                                   "+1",    ".5",   "1.",
                                   "1.5",   "1e5",  "1E+05",
                                   "-",     "1e",   "NaN",
                                   "true",  "True", "false ",
                                   "null",  "nul",  "none",
                                   "\"7\"", "[1]",  "{}",
                                   "7 7",   "7\v",  "123456789012345678901234567890"}) {
      CAPTURE(text);
      CHECK(types.find_word(text).has_value() ==
            words.accepts(std::u32string(text.begin(), text.end())));
    }
    // JSON that no double holds is no value, and no string is written so.
    CHECK_FALSE(types.find_word("1e999"));
    CHECK(words.accepts(U"1e999") == types.has(ElementKind::number));
    CHECK(types.find_word("true").has_value() == types.has(ElementKind::truth));
    CHECK(types.find_word(" 7\n").has_value() == types.has(ElementKind::number));
    CHECK(types.find_word("null").has_value() == types.has(ElementKind::null));
  }
}
