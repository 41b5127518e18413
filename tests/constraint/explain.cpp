#include <string>
#include <string_view>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/schema/json_schema.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

const VocabularyIndex& bytes() {
  static const VocabularyIndex cache(test::byte_vocabulary());
  return cache;
}

template <class C>
std::string after(const C& constraint, std::string_view text) {
  const auto state = constraint.advance_bytes(constraint.initial(), text);
  REQUIRE(state);
  return explain(constraint, *state);
}

const std::string& person() {
  static const std::string schema = R"({"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 3}, "age": {"type": "integer"},
    "ok": {"type": "boolean"}, "plate": {"type": "string", "pattern": "^a[0-9]+$"},
    "size": {"enum": ["S", "M"]}, "none": {"const": null},
    "days": {"type": "integer", "minimum": 1, "maximum": 30}}, "additionalProperties": )";
  return schema;
}
Constraint closed() {
  return Constraint(bytes(), Grammar::json_schema(person() + "false}", {.whitespace = 0}));
}
Constraint open() {
  return Constraint(bytes(), Grammar::json_schema(person() + "true}"));
}

const ToolSet& documents() {
  return test::two_tools();
}

}  // namespace

TEST_CASE("explain over a JSON Schema says in words what may follow") {
  const auto constraint = closed();
  CHECK(after(constraint, "") == "an opening brace '{'");
  CHECK(after(constraint, "{") == R"(the key "name", "age", "ok", "plate", "size" and 2 more)");
  CHECK(after(constraint, "{\"n") == R"(the rest of the key "name" or "none")");
  CHECK(after(constraint, "{\"name\"") == "a colon ':'");
  CHECK(after(constraint, "{\"name\": ") == "a string of 1 to 3 characters");
  CHECK(after(constraint, "{\"name\": \"") == "inside a string (1 to 3 more characters)");
  CHECK(after(constraint, "{\"name\": \"ab") == "inside a string (at most 1 more character)");
  CHECK(after(constraint, "{\"name\": \"a\\u00") == "the rest of a character in a string");
  CHECK(after(constraint, "{\"name\": \"abc") == "the end of a string, \"");
  CHECK(after(constraint, "{\"name\": \"abc\"") == "one of: a closing brace '}'; a comma ','");
  CHECK(after(constraint, "{\"name\": \"abc\"}") == "the end of the text");
  CHECK(after(constraint, "{\"age\": ") == "an integer");
  CHECK(after(constraint, "{\"age\": 1") == "one of: a comma ','; inside an integer");
  CHECK(after(constraint, "{\"days\": 3") ==
        "one of: a comma ','; inside a number of a certain form: next the character '0'");
  CHECK(after(constraint, "{\"ok\": ") == R"("true" or "false")");
  CHECK(after(constraint, "{\"ok\": t") == R"(the rest of "true")");
  CHECK(after(constraint, "{\"none\": n") == R"(the text "ull")");
  CHECK(after(constraint, "{\"plate\": \"a") ==
        "inside a string of a certain form: next one of the characters [0-9]");
  const auto finished = constraint.advance(
      *constraint.advance_bytes(constraint.initial(), "{\"name\": \"abc\"}"), 256);
  REQUIRE(finished);
  CHECK(explain(constraint, *finished) == "nothing: the text has ended");
}

TEST_CASE("explain over a JSON Schema omits keys that are present and mentions other keys") {
  CHECK(after(closed(), "{\"size\": \"S\", \"name\": \"x\", \"plate\": \"a1\", ") ==
        R"(the key "age", "ok", "none" or "days")");
  CHECK(after(open(), "{\"age\":1,\"ok\":true,\"size\":\"M\",\"none\":null,") ==
        R"(one of: the key "name", "plate" or "days"; another key; white space)");
  CHECK(after(open(), "{\"on") == R"(inside a key)");
}

TEST_CASE("explain over an EBNF grammar lists the next characters") {
  const Constraint constraint(bytes(), Grammar::ebnf("root ::= [a-f]+ \"it's\\n\" [^\\n]*"));
  CHECK(after(constraint, "") == "one of the characters [a-f]");
  CHECK(after(constraint, "abit's\n") == "one of: any text; the end of the text");
  CHECK(after(constraint, "abit's\nx\xC3") == "the rest of a character");
}

TEST_CASE("explain within a call names the tool and the argument") {
  const ToolCallFSM calls{
      bytes(), documents(), PythonCall{}, {.choice = ToolChoice::required, .whitespace = 40}};
  CHECK(after(calls, "[") == R"(one of: "get(" or "get_time("; white space)");
  CHECK(after(calls, "[get(") ==
        R"(in a call of get: one of: the key "city" or "days"; white space)");
  CHECK(after(calls, "[get(city='O") == R"(in the argument "city" of get: inside a string)");
  const ToolCallFSM answer{bytes(), documents(), JsonCall::hermes(), {.whitespace = 40}};
  CHECK(after(answer, "Hm.") == "one of: any text; the end of the text");
  CHECK(after(answer, "<tool_call>{\"name\": \"get_t") == R"(the rest of "get_time")");
}

TEST_CASE("explain in an argument that only allOf describes names the call alone") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
      "properties": {"a": {"type": "integer"}},
      "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}}])");
  const ToolCallFSM calls(bytes(), tools, PythonCall{}, {.choice = ToolChoice::required});
  const auto in_a = calls.advance_bytes(calls.initial(), "[f(a=");
  const auto in_b = calls.advance_bytes(calls.initial(), "[f(b=");
  REQUIRE((in_a && in_b));
  CHECK(calls.find_argument(*in_a) == 0);
  CHECK_FALSE(calls.find_argument(*in_b));
  CHECK(explain(calls, *in_a).starts_with("in the argument \"a\" of f: "));
  CHECK(explain(calls, *in_b).starts_with("in a call of f: "));
}
