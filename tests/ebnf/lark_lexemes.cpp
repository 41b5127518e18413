#include <memory>
#include <string>
#include <string_view>

#include <tooldecode/ebnf/lark_lexemes.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

LarkLexeme lexeme(std::string_view pattern, bool is_lazy = false) {
  const auto some = lexeme_texts(text::compile_whole_pattern(pattern), is_lazy);
  LarkLexeme made{.dfa     = std::make_shared<const text::Dfa>(text::utf8_lexeme(some)),
                  .is_lazy = is_lazy};
  made.first = made.dfa->live(0);
  return made;
}

}  // namespace

TEST_CASE("lexeme_texts ends a lazy lexeme at its first match and excludes the empty text") {
  const auto lazy = lexeme("[ab]*b", true), many = lexeme("a*");
  CHECK(test::accepts(*lazy.dfa, "aab"));
  CHECK_FALSE(test::accepts(*lazy.dfa, "abb"));
  CHECK(test::accepts(*many.dfa, "aa"));
  CHECK_FALSE(test::accepts(*many.dfa, ""));
}

TEST_CASE("find_continuing and find_meeting tell how one lexeme continues another") {
  const auto word = lexeme("[a-c]+"), keyword = lexeme("ab"), quoted = lexeme("'[^']*'");
  CHECK(find_continuing(*keyword.dfa, *word.dfa) == text::ByteSet::of("abc"));
  CHECK(find_continuing(*word.dfa, *keyword.dfa) == text::ByteSet::of("b"));
  CHECK(find_continuing(*quoted.dfa, *quoted.dfa).empty());
  const LarkMeeting met = find_meeting(*word.dfa, *keyword.dfa);
  CHECK(met.is_shared);
  CHECK(met.is_inside);
  CHECK_FALSE(find_meeting(*keyword.dfa, *word.dfa).is_shared == false);
  CHECK_FALSE(find_meeting(*quoted.dfa, *word.dfa).is_shared);
}

TEST_CASE("split_lexeme separates texts by the bytes that must not follow") {
  const auto here = lexeme("[a-c]+|'[a-c]*'"), word = lexeme("[a-c]+");
  const auto variants =
      split_lexeme(here, {here.dfa.get(), word.dfa.get()}, {}, text::ByteSet::of("c; "));
  REQUIRE(variants.size() == 2);
  for (const LarkVariant& one : variants) {
    const bool is_word = !one.forbidden.empty();
    CHECK(one.forbidden == (is_word ? text::ByteSet::of("c") : text::ByteSet{}));
    CHECK(test::accepts(*one.dfa, "ab") == is_word);
    CHECK(test::accepts(*one.dfa, "'ab'") != is_word);
  }
}

TEST_CASE("split_lexeme ends a lexeme at the end of a lazy one") {
  const auto text = lexeme("[^]*"), call = lexeme("[^]*<c>", true), same = lexeme("x?<c>", true);
  const auto all  = text::ByteSet::all();
  const auto rest = split_lexeme(text, {}, {call.dfa.get()}, all);
  REQUIRE(rest.size() == 1);
  CHECK(test::accepts(*rest[0].dfa, "a<c"));
  CHECK_FALSE(test::accepts(*rest[0].dfa, "a<c>"));
  CHECK_FALSE(test::accepts(*rest[0].dfa, "a<c>b"));
  const auto both = split_lexeme(same, {}, {call.dfa.get()}, all);
  REQUIRE(both.size() == 1);
  CHECK(test::accepts(*both[0].dfa, "x<c>"));
}

TEST_CASE("without_first removes texts by their first byte") {
  const auto word = lexeme("a+|ba");
  const auto rest = without_first(*word.dfa, text::ByteSet::of("a"));
  CHECK(test::accepts(*rest, "ba"));
  CHECK_FALSE(test::accepts(*rest, "a"));
  CHECK(without_first(*word.dfa, text::ByteSet::of("ab"))->empty());
}
