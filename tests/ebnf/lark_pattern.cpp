#include <string>
#include <string_view>

#include <tooldecode/ebnf/lark_pattern.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/regex.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

bool matches(std::string_view expression, std::string_view text, std::string_view flags = "") {
  return text::compile_whole_pattern(lark_pattern(expression, flags))
      .accepts(text::decode_utf8(text));
}
std::string error_of(std::string_view expression) {
  return test::error_of([&] { return lark_pattern(expression); });
}

}  // namespace

TEST_CASE("lark_pattern reads the syntax of Rust's regular expressions") {
  CHECK(matches("a|b|", ""));
  CHECK(matches("(?:ab){2}c??", "ababc"));
  CHECK(matches("(?P<x>a)(?<y>b)", "ab"));
  CHECK(matches("[a-z&&[^m]--b]+", "acz"));
  CHECK_FALSE(matches("[a-z&&[^m]--b]+", "amz"));
  CHECK(matches("[[:digit:][:^ascii:]]+", "1\u00e9"));
  CHECK(matches("[]a-]+", "a]-"));
  CHECK(matches(R"(\x41\u{42}\u0043\-\/)", "ABC-/"));
  CHECK(matches("^a.c$", "a\rc"));
  CHECK_FALSE(matches("a.c", "a\nc"));
  CHECK(matches("a.c", "a\nc", "s"));
  CHECK(matches("a b # c", "ab", "x"));
  CHECK(matches("[a - c]", "b", "x"));
  CHECK_FALSE(matches("[a - c]", "-", "x"));
  CHECK(matches("[ a - ]+", "a-", "x"));
  CHECK(matches("[ a-c - - b ]+", "ac", "x") == matches("[a-c--b]+", "ac"));
  CHECK(matches("[a - c]+", "a c"));  // without the flag, a range from space to space
  CHECK_FALSE(matches("[a - c]+", "b"));
  CHECK(matches(R"(\p{Lu}\PL)", "A1"));
}

TEST_CASE("lark_pattern reads what begins a class as Rust does") {
  CHECK(matches("[--a]+", "-a"));
  CHECK_FALSE(matches("[--a]", "0"));
  CHECK(matches("[^---a]", "0"));
  CHECK_FALSE(matches("[^---a]", "a"));
  CHECK(matches("[-]-]", "--]"));
  CHECK(matches("[ ^ ] a]", "b", "x"));
  CHECK_FALSE(matches("[ ^ ] a]", "]", "x"));
  CHECK_FALSE(matches("[&&a]", "a"));
  CHECK_FALSE(matches("[&&a]", "&"));
  CHECK(matches("[~~a]", "a"));
  CHECK_FALSE(matches("[~~a]", "~"));
  CHECK(matches("[A-[]+", "B["));
  CHECK(matches("[\\d-]+", "1-"));
  CHECK(error_of("[\\d-z]") == "malformed_pattern byte 1");
  CHECK(error_of("[\\<]") == "malformed_pattern byte 1");
}

TEST_CASE("lark_pattern refuses what Rust refuses in groups and properties") {
  for (const char* expression : {"(?)", "(?-)", "(?-:a)", "(?i-:a)", "(?ii:a)", "(?i-i:a)",
                                 "(?<1a>a)", "(?P<a b>a)", "(?<a>b)(?<a>c)"}) {
    INFO(expression);
    CHECK(error_of(expression).starts_with("malformed_pattern"));
  }
  CHECK(error_of("\\p{^Lu}") == "unsupported_pattern byte 0");
  CHECK(matches("(?<a.b[0]>a)(?<\u00e9>b)", "ab"));
  CHECK(matches("a\u00a0b", "ab", "x"));
}

TEST_CASE("lark_pattern reads bytes of the flag -u in ASCII only") {
  CHECK_FALSE(matches("(?i-u:k)", "\u212a"));
  CHECK(matches("(?i-u:[k]\u00e9)", "K\u00e9"));
  for (const char* expression :
       {"(?-u:.)", "(?s-u:.)", "(?-u:\\D)", "(?-u:\\W)", "(?-u:[^a])", "(?-u:\\xff)",
        "(?-u:[\u00e9])", "(?-u:[[:^alpha:]])", "(?-u:\\pL)"}) {
    INFO(expression);
    CHECK(error_of(expression).starts_with("unsupported_pattern"));
  }
}

TEST_CASE("lark_pattern uses Unicode classes unless a flag disables them") {
  CHECK(matches(R"(\d\w\s)", "\u0661\u24b6\u00a0"));
  CHECK_FALSE(matches(R"((?-u:\d))", "\u0661"));
  CHECK_FALSE(matches(R"(\W)", "\u00e9"));
}

TEST_CASE("lark_pattern ignores the case of known letters and throws for others") {
  CHECK(matches("k[^s]", "K1", "i"));
  CHECK(matches("(?i)k", "\u212a"));
  CHECK_FALSE(matches("[^k]", "\u212a", "i"));
  CHECK(matches("a(?i:b)", "aB"));
  CHECK_FALSE(matches("a(?i:b)", "AB"));
  CHECK(error_of("(?i)\u00e9").starts_with("unsupported_pattern"));
}

TEST_CASE("lark_pattern errors name the byte of malformed and unsupported parts") {
  CHECK(error_of("a(b") == "malformed_pattern byte 1");
  CHECK(error_of("ab)") == "malformed_pattern byte 2");
  CHECK(error_of("a[b") == "malformed_pattern byte 1");
  CHECK(error_of("a{,2}") == "malformed_pattern byte 1");
  CHECK(error_of("*") == "malformed_pattern byte 0");
  CHECK(error_of(R"(\e)") == "malformed_pattern byte 0");
  CHECK(error_of("[z-a]") == "malformed_pattern byte 1");
  CHECK(error_of(R"(a\b)") == "unsupported_pattern byte 1");
  CHECK(error_of("a(?=b)") == "unsupported_pattern byte 1");
  CHECK(error_of("a^b") == "unsupported_pattern byte 1");
  CHECK(error_of(R"((a)\1)") == "unsupported_pattern byte 3");
  CHECK(error_of(std::string(300, '(') + std::string(300, ')')).starts_with("limit_exceeded"));
}
