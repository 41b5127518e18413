#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/formats/plain_text.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::schema;
using namespace tooldecode::text;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

namespace {

constexpr const char* closing = "</p>";

// The texts of a schema, a line end, and the delimiter, as in a call.
Automaton machine_of(const Json& schema) {
  Grammar grammar;
  PlainText plain(grammar, closing);
  Reader reader(schema);
  const NodeId value = plain.value(reader, reader.form(schema, "#"), "#");
  const NodeId end   = grammar.literal(std::string("\n") + closing);
  const NodeId root  = grammar.sequence({value, end});
  return Automaton(std::move(grammar), root);
}

bool accepts(const Automaton& machine, const std::string& text) {
  auto state = machine.initial();
  for (const char c : text + "\n" + closing) {
    const auto next = machine.step(state, static_cast<std::uint8_t>(c));
    if (!next) return false;
    state = *next;
  }
  return machine.is_accepting(state);
}

std::string error_of(const std::string& schema) {
  return test::error_of([&] { return machine_of(tooldecode::text::parse_json(schema)); });
}

}  // namespace

TEST_CASE("find_plain_form of a schema is text where all values are strings, nullable with null") {
  const auto form = [](const char* text) {
    const Json schema = tooldecode::text::parse_json(text);
    return find_plain_form(schema, schema);
  };
  CHECK(form(R"({"type": "string"})") == PlainForm::text);
  CHECK(form(R"({"enum": ["a", "b"]})") == PlainForm::text);
  CHECK(form(R"({"type": "string", "enum": ["a", 1]})") == PlainForm::text);
  CHECK(form(R"({"const": "a"})") == PlainForm::text);
  CHECK(form(R"({"type": ["string", "null"]})") == PlainForm::nullable);
  CHECK(form(R"({"anyOf": [{"type": "string"}, {"type": "null"}]})") == PlainForm::nullable);
  CHECK(form(R"({"type": "string", "anyOf": [{"minLength": 2}, {"type": "null"}]})") ==
        PlainForm::text);
  CHECK(form(R"({"$defs": {"s": {"type": "string"}}, "oneOf": [{"$ref": "#/$defs/s"}]})") ==
        PlainForm::text);
  CHECK(form(R"({"type": ["string", "integer"]})") == PlainForm::mixed);
  CHECK(form(R"({"enum": ["a", 1]})") == PlainForm::mixed);
  CHECK(form("{}") == PlainForm::mixed);
  CHECK(form("true") == PlainForm::mixed);
  CHECK(form(R"({"type": "null"})") == PlainForm::json);
  CHECK(form(R"({"type": "object", "properties": {}})") == PlainForm::json);
  CHECK(form(R"({"allOf": [{"type": ["string", "integer"]}, {"not": {"type": "integer"}}]})") ==
        PlainForm::text);
  CHECK_FALSE(form(R"({"$defs": {"s": {"anyOf": [{"$ref": "#/$defs/s"}, {"type": "string"}]}},
                       "$ref": "#/$defs/s"})"));
}

TEST_CASE("PlainText accepts UTF-8 texts that conform and do not hold the mark") {
  const std::vector<Json> schemas{
      {{"type", "string"}},
      {{"type", "string"}, {"maxLength", 3}},
      {{"type", "string"}, {"minLength", 2}, {"maxLength", 5}},
      {{"type", "string"}, {"pattern", "^[</p>a]*$"}},
      {{"type", "string"}, {"pattern", "p"}, {"maxLength", 4}},
      {{"enum", {"a", "", "</p", "é\n"}}},
      {{"anyOf", {Json{{"type", "string"}, {"minLength", 4}}, Json{{"const", "p"}}}}},
      {{"type", "string"}, {"allOf", {Json{{"pattern", "^[<p]"}}, Json{{"maxLength", 3}}}}},
      {{"type", "string"}, {"not", {{"enum", {"", "a", "<"}}}}},
  };
  const std::vector<std::string> pieces{"<", "/",  "p",  ">",    "a",    "\n",  "é",
                                        "€", "😀", "\"", "\xC3", "\x80", "</p", "\xED\xA0\x80"};
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    const Automaton machine = machine_of(schemas[i]);
    std::mt19937 random(static_cast<unsigned>(i));
    int accepted = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string text;
      for (auto n = random() % 6; n > 0; --n) text += pieces[random() % pieces.size()];
      CAPTURE(schemas[i].text(), text, round);
      const bool expected = is_utf8(text) && text.find(closing) == std::string::npos &&
                            slow::conforms(Json(text), schemas[i], schemas[i]);
      if (accepts(machine, text) != expected) FAIL("expected " << expected);
      accepted += expected ? 1 : 0;
    }
    CHECK(accepted > 20);
  }
}

TEST_CASE("PlainText of a schema with null and strings accepts the word null") {
  const Automaton machine =
      machine_of(tooldecode::text::parse_json(R"({"type": ["null", "string"], "maxLength": 2})"));
  CHECK(accepts(machine, "null"));
  CHECK(accepts(machine, "ab"));
  CHECK_FALSE(accepts(machine, "nul"));
}

TEST_CASE("PlainText of a schema without a text that avoids the mark throws") {
  CHECK(error_of(R"({"enum": ["a", "b</p>"]})") == "unsupported_keyword #");
  CHECK(error_of(R"({"type": "string", "pattern": "^x</p>$"})") == "unsatisfiable_schema #");
  CHECK(error_of(R"({"type": "string", "pattern": "x"})") == "none");
}

TEST_CASE(
    "PlainText::value_or_nothing of an empty form is nothing, and throws only for delimiters") {
  const auto made = [](const char* text) -> std::string {
    const Json schema = tooldecode::text::parse_json(text);
    Grammar grammar;
    PlainText plain(grammar, closing);
    Reader reader(schema);
    Spellings spellings(grammar, ValueSyntax::json);
    GrammarBuilder json(grammar, reader, spellings, false);
    try {
      const NodeId node = plain.value_or_nothing(reader, reader.form(schema, "#"), "#", json);
      return grammar.satisfiable()[node.index()] ? "some" : "nothing";
    } catch (const Error& e) {
      return std::string(name(e.code())) + " " + e.where();
    }
  };
  CHECK(made("false") == "nothing");
  CHECK(made(R"({"enum": []})") == "nothing");
  CHECK(made(R"({"type": "string", "pattern": "^abc$", "maxLength": 2})") == "nothing");
  CHECK(made(R"({"type": "string", "pattern": "^abc$"})") == "some");
  CHECK(made(R"({"type": "string", "pattern": "^x</p>$"})") == "unsatisfiable_schema #");
  CHECK(made(R"({"enum": ["b</p>"]})") == "unsupported_keyword #");
}

TEST_CASE("PlainText::value_or_nothing costs the same in a grammar of any size") {
  const Json schema =
      tooldecode::text::parse_json(R"({"type": "string", "pattern": "^abc$", "maxLength": 2})");
  const auto steps = [&](std::size_t nodes) {
    Grammar grammar;
    for (std::size_t i = 0; i < nodes; ++i) (void)grammar.literal("a");
    PlainText plain(grammar, closing);
    Reader reader(schema);
    Spellings spellings(grammar, ValueSyntax::json);
    GrammarBuilder json(grammar, reader, spellings, false);
    const schema::FormId form = reader.form(schema, "#");
    const BuildBudget budget;
    const NodeId node = plain.value_or_nothing(reader, form, "#", json);
    CHECK_FALSE(grammar.is_satisfiable(node));
    return budget.spent().steps;
  };
  CHECK(steps(100'000) == steps(0));
}
