#include <string_view>

#include <tooldecode/formats/strings_without.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

bool accepts(const char* schema, std::string_view text) {
  const Json document = tooldecode::text::parse_json(schema);
  Grammar values, grammar;
  const NodeId value = SchemaCompiler(values, document, {}).value(document, "#");
  const NodeId root =
      grammar.append(values, value, formats::StringsWithout({"<|end|>", "<|sep|>"}));
  const grammar::Automaton machine(std::move(grammar), root);
  const auto state = machine.advance(0, text);
  return state && machine.is_accepting(*state);
}

}  // namespace

TEST_CASE("strings_without excludes texts from strings and keys, and keeps length limits") {
  CHECK(accepts("{}", R"({"a": ["<|en", "d|>", "<|<|sep"]})"));
  CHECK_FALSE(accepts("{}", R"("<|end|>")"));
  CHECK_FALSE(accepts("{}", R"(["a", "b<|<|sep|>c"])"));
  CHECK_FALSE(accepts("{}", R"({"<|end|>": 1})"));
  const char* bounded = R"({"type": "string", "minLength": 2, "maxLength": 7})";
  CHECK(accepts(bounded, R"("<|end|")"));
  CHECK_FALSE(accepts(bounded, R"("<|end|>")"));
  CHECK_FALSE(accepts(bounded, R"("a")"));
  CHECK_FALSE(accepts(bounded, R"("12345678")"));
  CHECK(accepts(R"({"pattern": "^<.end.>$", "type": "string"})", R"("<|end|>")"));
}
