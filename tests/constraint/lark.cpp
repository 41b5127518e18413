#include <string>
#include <string_view>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/finite_language.hpp>

using namespace tooldecode;

namespace {

std::string error_of(std::string_view grammar) {
  return test::error_of(
      [&] { const Constraint constraint(slow::pieces_of({"a"}, 1), Grammar::lark(grammar)); });
}

}  // namespace

TEST_CASE("Constraint over a Lark grammar has the masks of its texts") {
  const char* grammar =
      "start: KEY \"=\" NAME | NAME \".\" NAME?\nKEY: \"ab\" | \"b\"\nNAME: /[ab]{1,2}/\n";
  slow::Language texts;
  for (const char* name : {"a", "b", "aa", "ab", "ba", "bb"}) {
    for (const char* key : {"ab", "b"}) texts.insert(std::string(key) + '=' + name);
    texts.insert(std::string(name) + '.');
    for (const char* other : {"a", "b", "aa", "ab", "ba", "bb"}) {
      texts.insert(std::string(name) + '.' + other);
    }
  }
  const Constraint constraint(slow::pieces_of(texts, 5), Grammar::lark(grammar));
  CHECK(slow::check_masks(constraint, texts, 5, 40) > 100);
}

TEST_CASE("Constraint over Lark's %json accepts values of the schema in documented order") {
  const char* grammar =
      R"(start: "call " %json {"type": "object", "properties": {"b": {"type": "integer"},
    "a": {"type": "string"}}, "required": ["b", "a"], "additionalProperties": false} ";"+)";
  const Constraint constraint(slow::pieces_of({"call {\"b\": 1};"}, 1), Grammar::lark(grammar));
  CHECK(slow::accepts(constraint, R"(call {"b": 12, "a": "x"};;)"));
  CHECK_FALSE(slow::accepts(constraint, R"(call {"a": "x", "b": 12};)"));
  CHECK_FALSE(slow::accepts(constraint, R"(call {"b": 12};)"));
}

TEST_CASE("Constraint over a Lark grammar accepts a control token only as that token") {
  const Vocabulary vocabulary({{"<call>", TokenType::control},
                               {"<end>", TokenType::control},
                               {"a", TokenType::normal},
                               {"<call", TokenType::normal},
                               {">", TokenType::normal}},
                              {.end_tokens = {1}});
  const Constraint constraint(
      VocabularyIndex(vocabulary),
      Grammar::lark("start: \"a\" <call> (\"a\" | <[0]>)", {.vocabulary = &vocabulary}));
  auto state = constraint.advance(constraint.initial(), 2);
  REQUIRE(state);
  CHECK_FALSE(constraint.advance(*state, 3));
  state = constraint.advance(*state, 0);
  REQUIRE(state);
  for (const TokenId last : {0, 2}) {
    const auto ended = constraint.advance(*state, last);
    REQUIRE(ended);
    CHECK(constraint.is_accepting(*ended));
  }
}

TEST_CASE(
    "Constraint over an unsatisfiable or malformed Lark grammar throws with the error's place") {
  CHECK(error_of("start: A A\nA: /a+/") == "unsatisfiable_schema ");
  CHECK(error_of("start: \"a\"\n%ignore [") == "malformed_grammar line 2, column 9");
  CHECK(error_of(R"(start: %json {"type": "strin"})")
            .starts_with("malformed_schema line 1, column 8"));
  CHECK(error_of("start: %json 1").starts_with("malformed_schema line 1, column 8"));
  CHECK(error_of("start[stop=\"a\"]: /b/") == "unsupported_keyword line 1, column 7");
}
