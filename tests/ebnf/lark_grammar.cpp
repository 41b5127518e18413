#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/grammar/automaton.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

void check(std::string_view grammar, const std::vector<std::string>& good,
           const std::vector<std::string>& bad) {
  INFO(grammar);
  Grammar parsed = parse_lark(grammar);
  const grammar::Automaton automaton(parsed);
  const auto accepts = [&](const std::string& text) {
    auto state = std::optional(automaton.initial());
    for (const char c : text) {
      if (state) state = automaton.step(*state, static_cast<std::uint8_t>(c));
    }
    return state && automaton.is_accepting(*state);
  };
  for (const std::string& text : good) {
    INFO(text);
    CHECK(accepts(text));
  }
  for (const std::string& text : bad) {
    INFO(text);
    CHECK_FALSE(accepts(text));
  }
}

}  // namespace

TEST_CASE("parse_lark takes the longest match of terminals") {
  check("start: NAME \"and\" NAME\nNAME: /[a-z]+/\n%ignore \" \"",
        {"x and y", "and and and", "x andy"}, {"xandy", "xand y", "x and"});
  check("start: (\"if\" NAME | NAME \"=\")+\nNAME: /[a-z]+/\n%ignore \" \"",
        {"if x", "if=", "iffy =", "if x y=", "if = if y"}, {"ifx", "ifx y"});
  check("start: \"a\" \"b\" | \"abc\"", {"abc"}, {"ab", "a"});
  check("start: A+\nA: /a+b?/", {"aab", "abab", "aaa"}, {"abb"});
}

TEST_CASE("parse_lark ends other terminals at the end of a lazy terminal") {
  const char* calls =
      "start: (head \"1\" | other \"2\")* TEXT\nhead[lazy]: TEXT \"<c>\"\n"
      "other[suffix=\"<c>\"]: TEXT\nTEXT: /(.|\\n)*/";
  check(calls, {"", "text <c", "a<c>1", "<c>2b<c>1\nc"}, {"a<c>", "a<c>3", "a<c>1<c>"});
  check("start: r \">\"\nr[lazy]: /[a-z]+/", {"a>"}, {"ab>", ">"});
  check("start: a \"x\" | b \"y\"\na[lazy]: /abc/\nb[lazy]: /ab/", {"aby"}, {"abcx", "abx"});
}

TEST_CASE("parse_lark accepts ignored text between terminals and before an optional continuation") {
  const char* sums = "start: N (\"+\" N)~0..1\n%import common.INT -> N\n%ignore / /";
  check(sums, {"1", "1 + 2", "1  +2", "1 "}, {" 1", "1 + 2 ", "1 2", "1+2+3"});
  check("start: \"(\" start \")\" | \"a\"\n%ignore \" \"", {"( a )", "((a ) )"}, {"a ", "( a ) "});
  check("start: \"a\"\n%ignore \" \"\n%llguidance {\"allow_initial_skip\": true}", {" a", "a"},
        {"a "});
  check(
      "start: \"a\" \"b\" \"c\"?\n%import common (WS, CPP_COMMENT)\n%ignore WS\n%ignore CPP_COMMENT",
      {"a // b\n\t b", "a//\n//c\nb", "ab//c", "ab//c\n"}, {"a // b", "a //\nb c "});
}

TEST_CASE("parse_lark reads recursion at any place and terminals that may be empty") {
  check("start: start \"a\" | B \"c\"\nB: /b*/", {"c", "bca", "bbcaa"}, {"", "b", "ca b"});
  check("start: e\ne: e \"+\" e | \"(\" e \")\" | /[0-9]+/", {"1+(2+3)+4"}, {"1+", "(1"});
  check("start: %lark {\nstart: a\na: \"1\"\n} a\na: \"2\"", {"12"}, {"11", "22"});
}

TEST_CASE("parse_lark counts items exactly if they restrict what follows") {
  check("start: W~2..3 \".\"\nW: /[a-z]+/ | \",\"\n", {"a,.", "a,b.", ",,."},
        {"ab.", "a,b,.", "a."});
  check("start: W{2,} \"!\"?\nW: /a+b?/", {"aba", "abab!", "abaaba"}, {"aa", "aaa!", "ab"});
}

TEST_CASE("parse_lark of an empty language builds no automaton and its errors name the byte") {
  Grammar none = parse_lark("start: A A\nA: /a+/");
  CHECK_THROWS_AS(grammar::Automaton(none), Error);
  try {
    (void)parse_lark("start: \"a\" other");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::malformed_grammar);
    CHECK(error.where() == "byte 11");
  }
}
