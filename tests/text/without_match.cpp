#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/without_match.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

Dfa lexeme_of(std::string_view pattern) {
  return utf8_lexeme(compile_whole_pattern(pattern));
}

}  // namespace

TEST_CASE("without_bytes keeps the texts that do not contain the bytes") {
  std::mt19937 random(11);
  const Dfa all = lexeme_of("[abc]*c?");
  for (const std::string_view bytes : {"a", "ab", "aa", "aba", "abab", "cab"}) {
    INFO(bytes);
    const Dfa without = without_bytes(all, bytes);
    std::size_t held  = 0;
    for (int i = 0; i < 2000; ++i) {
      std::string text;
      for (std::size_t n = random() % 9; n > 0; --n) text += "abc"[random() % 3];
      const bool holds = text.find(bytes) != text.npos;
      held += holds;
      REQUIRE(test::accepts(without, text) == (test::accepts(all, text) && !holds));
    }
    CHECK(held > 20);
  }
}

TEST_CASE("without_match at the start removes matches at the start only") {
  const Dfa all       = lexeme_of("[ab]*");
  const Dfa not_first = without_match(all, lexeme_of("ab"), MatchAt::start);
  CHECK_FALSE(test::accepts(not_first, "ab"));
  CHECK_FALSE(test::accepts(not_first, "abb"));
  CHECK(test::accepts(not_first, "aab"));
  CHECK(test::accepts(without_match(all, Dfa({}), MatchAt::anywhere), "ab"));
}

TEST_CASE("without_bytes keeps the unit boundaries of a string") {
  const DfaPointer& any = any_string(ValueSyntax::json, '"');
  const Dfa without     = without_bytes(*any, "</a>");
  for (const std::string_view text :
       {"\"x\xC3\xA9\"", R"("\u003c/a>")", R"("</b>")", R"("<\/a>")"}) {
    INFO(text);
    Dfa::State plain = 0, one = 0;
    for (const char c : text) {
      const auto byte = static_cast<std::uint8_t>(c);
      plain           = any->next(plain, byte);
      one             = without.next(one, byte);
      REQUIRE(one != Dfa::dead);
      CHECK(without.boundary(one) == any->boundary(plain));
      CHECK(without.closing(one) == any->closing(plain));
    }
    CHECK(without.accepting(one));
  }
  CHECK_FALSE(test::accepts(without, R"("x</a>")"));
}
