#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include <tooldecode/ebnf/lark_lexemes.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

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
  const LarkMeeting back = find_meeting(*keyword.dfa, *word.dfa);
  CHECK(back.is_shared);
  CHECK(back.is_inside);  // "a" is a word
  const LarkMeeting apart = find_meeting(*quoted.dfa, *word.dfa);
  CHECK_FALSE(apart.is_shared);
  CHECK_FALSE(apart.is_inside);
}

TEST_CASE("find_continuing and find_meeting agree with the texts of lexemes one by one") {
  std::size_t shared = 0, inside = 0, continued = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const auto words = [&] {
      std::set<std::string> all;
      for (std::size_t n = 1 + random() % 3; n > 0; --n) {
        std::string word;
        for (std::size_t length = 1 + random() % 3; length > 0; --length)
          word += "abc"[random() % 3];
        all.insert(word);
      }
      return all;
    };
    const auto lexeme_of = [](const std::set<std::string>& all) {
      std::string pattern;
      for (const std::string& word : all) pattern += (pattern.empty() ? "" : "|") + word;
      return lexeme(pattern);
    };
    const std::set<std::string> a = words(), b = words();
    LarkMeeting expected;
    text::ByteSet bytes;
    for (const std::string& one : a) {
      for (const std::string& other : b) {
        const bool is_prefix = other.size() > one.size() && other.starts_with(one);
        if (is_prefix) bytes.insert(static_cast<std::uint8_t>(other[one.size()]));
        expected.is_shared = expected.is_shared || one == other;
        expected.is_inside = expected.is_inside || (one != other && one.starts_with(other));
      }
    }
    INFO("seed " << seed);
    const auto of_a = lexeme_of(a), of_b = lexeme_of(b);
    CHECK(find_continuing(*of_a.dfa, *of_b.dfa) == bytes);
    const LarkMeeting met = find_meeting(*of_a.dfa, *of_b.dfa);
    CHECK(met.is_shared == expected.is_shared);
    CHECK(met.is_inside == expected.is_inside);
    shared += met.is_shared, inside += met.is_inside, continued += !bytes.empty();
  }
  CHECK(std::min({shared, inside, continued}) > 50);
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
