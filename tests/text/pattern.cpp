#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/pattern.hpp>

#include <support/catch.hpp>

using tooldecode::text::CodePointSet;
using tooldecode::text::Occurrences;
using tooldecode::text::Pattern;
using tooldecode::text::PatternReader;

namespace {

// The set of a pattern of one atom.
CodePointSet set_of(std::string_view text) {
  const Pattern pattern(text);
  REQUIRE(pattern[pattern.root()].kind == Pattern::Kind::set);
  return pattern.sets()[pattern[pattern.root()].set];
}

std::string place_of(std::string_view text) {
  try {
    const Pattern pattern(text);
  } catch (const tooldecode::Error& error) {
    return std::string(error.where());
  }
  return "none";
}

}  // namespace

TEST_CASE("Pattern shares the node of a set that occurs many times") {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "[0-9]";
  CHECK(Pattern(pattern).nodes().size() == 2);
}

TEST_CASE("Pattern parses sequences, repeats, choices, lookaheads and anchors into a tree") {
  const Pattern pattern("^(?:ab|[c-e]{2,})*?(?!x\\b)$");
  const Pattern::Node& all = pattern[pattern.root()];
  REQUIRE(all.kind == Pattern::Kind::sequence);
  REQUIRE(all.children.size() == 4);
  CHECK(pattern[all.children[0]].kind == Pattern::Kind::begin);
  const Pattern::Node& star = pattern[all.children[1]];
  REQUIRE(star.kind == Pattern::Kind::repeat);
  CHECK(star.count == Occurrences{});
  CHECK(star.can_empty);
  const Pattern::Node& choice = pattern[star.children[0]];
  REQUIRE(choice.kind == Pattern::Kind::choice);
  CHECK_FALSE(choice.can_empty);
  CHECK(pattern[choice.children[1]].count == Occurrences{2, Occurrences::unbounded});
  const Pattern::Node& look = pattern[all.children[2]];
  CHECK(look.kind == Pattern::Kind::lookahead);
  CHECK(look.negated);
  CHECK(all.has_look);
  CHECK_FALSE(star.has_look);
  CHECK(pattern[all.children[3]].kind == Pattern::Kind::end);
}

TEST_CASE("Pattern reads character classes in each notation of ECMA-262") {
  CHECK(set_of("[a-cx\\d_-]") ==
        CodePointSet{{'a', 'c'}, {'x', 'x'}, {'0', '9'}, {'_', '_'}, {'-', '-'}});
  CHECK(set_of("[\\w-.]") == (PatternReader::word() | CodePointSet{{'-', '.'}}));
  CHECK(set_of("[a-\\d]") == CodePointSet{{'a', 'a'}, {'-', '-'}, {'0', '9'}});
  CHECK(set_of("[^\\S]") == set_of("\\s"));
  CHECK(set_of("[\\u{1F600}-\\uD83D\\uDE0F]") == CodePointSet{{0x1F600, 0x1F60F}});
  CHECK(set_of("[\\cA-\\x1f\\b]") == CodePointSet{{1, 0x1F}});
  CHECK(set_of("\\p{Zs}") == (set_of("\\s") & set_of("[\\p{Zs}]")));
  CHECK(set_of("\\P{L}") == ~set_of("\\p{Letter}"));
  CHECK(set_of("[^\\p{sc=Greek}]") == set_of("\\P{Script=Greek}"));
  CHECK(set_of("[]").empty());
  CHECK(set_of("[^]") == CodePointSet::all());
  CHECK(set_of("]") == CodePointSet{{']', ']'}});
  CHECK(set_of("\\uD800").empty());
}

namespace {

// Verdicts of a JavaScript engine with the flag `u`; `lenient`: errors with the flag and valid
// without it.
const std::vector<std::string_view> right{"a*?",
                                          "a+?",
                                          "a?\?",
                                          "a{2}?",
                                          "a{2,}?",
                                          "a{2,3}?",
                                          "(a*)*",
                                          "(?:a{2}){3}",
                                          "(a){2}",
                                          "a{0}",
                                          "a{00002}",
                                          "a{0,99999999999}",
                                          "a{2,2}",
                                          "^$",
                                          "^^",
                                          "$$",
                                          "(^)*",
                                          "(?:^a)*",
                                          "(?:$)?",
                                          "\\b\\B",
                                          "(?=a)b",
                                          "(?!a)b",
                                          "[a-a]",
                                          "[--a]",
                                          "[a-]",
                                          "[-a]",
                                          "[^-a]",
                                          "[]",
                                          "[^]",
                                          "[\\]]",
                                          "[\\-]",
                                          "[\\b]",
                                          "[+--]",
                                          "[a^]",
                                          "[$.*+?(){}|]",
                                          "[\\ud83d\\ude00-\\ud83d\\ude4f]",
                                          "[\\ud800-\\udfff]",
                                          "[^\\ud800-\\udfff]",
                                          "[\\u0000-\\udbff]",
                                          "[\\udc00-\\u{1F600}]",
                                          "[\\ud83d]",
                                          "\\ud83d",
                                          "\\ud83d\\u0041",
                                          "\\ud83d\\u{41}",
                                          "\\ud83d\\ud83d\\ude00",
                                          "\\u{d83d}\\u{de00}",
                                          "[\\u{d83d}-\\u{de00}]",
                                          "\\ude00\\ud83d",
                                          "\\cA",
                                          "\\cz",
                                          "[\\cA]",
                                          "\\0",
                                          "[\\0]",
                                          "\\0a",
                                          "\\x41",
                                          "\\u0041",
                                          "\\u{41}",
                                          "\\u{000041}",
                                          "\\u{10FFFF}",
                                          "\\^\\$\\\\\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/",
                                          "\\p{L}",
                                          "\\p{Lu}",
                                          "\\P{Letter}",
                                          "\\p{gc=L}",
                                          "\\p{General_Category=Nd}",
                                          "\\p{Script=Greek}",
                                          "\\p{sc=Grek}",
                                          "[\\p{L}\\p{N}_]",
                                          "\\p{Any}",
                                          "\\p{ASCII}",
                                          "\\p{Assigned}",
                                          "\\p{LC}",
                                          "\\p{punct}",
                                          "(?<n>a)",
                                          "(?<$_1>a)",
                                          "(?<\xC3\xA9>a)",
                                          "(?<\\u0061b>c)",
                                          "(?<\\u{61}>c)",
                                          "(?<\xE4\xB8\xAD\xE6\x96\x87>a)",
                                          "()",
                                          "(|a)",
                                          "a||b",
                                          "|",
                                          "(?:)"};
const std::vector<std::string_view> wrong{"a**",
                                          "a*+",
                                          "a+*",
                                          "a?*",
                                          "a?\?+",
                                          "a*?\?",
                                          "a{2}{3}",
                                          "a{2}*",
                                          "a{2}+",
                                          "a{2}?\?",
                                          "a+{2}",
                                          "a{1,2}{3}",
                                          "(a)*{2}",
                                          "[a]{2}{2}",
                                          "a{2}?{3}",
                                          "*",
                                          "+",
                                          "?",
                                          "{2}",
                                          "{2,}",
                                          "{2,3}",
                                          "a|*",
                                          "a|{2}",
                                          "(*)",
                                          "(?:+a)",
                                          "^*",
                                          "$+",
                                          "^{2}",
                                          "\\b*",
                                          "\\B{2}",
                                          "(?=a)*",
                                          "(?!a)+",
                                          "(?=a){2}",
                                          "(?<=a)*",
                                          "(?<!a)?",
                                          "a{2,1}",
                                          "a{10,9}",
                                          "a{99999999999,3}",
                                          "a{,3}",
                                          "a{,}",
                                          "[b-a]",
                                          "[z-a]",
                                          "[\\u{1F600}-a]",
                                          "[\\ude00-\\ud83d]",
                                          "[a",
                                          "[",
                                          "[^",
                                          "[\\",
                                          "(",
                                          "(a",
                                          "(?:a",
                                          "(?=a",
                                          "(?<n>a",
                                          "(?<=a",
                                          ")",
                                          "a)",
                                          "()())",
                                          "\\",
                                          "a\\",
                                          "\\c",
                                          "\\c1",
                                          "\\c_",
                                          "[\\c]",
                                          "[\\c1]",
                                          "\\k",
                                          "\\k<",
                                          "\\k<>",
                                          "\\k<a",
                                          "\\k<a>",
                                          "(?<b>a)\\k<a>",
                                          "(?<a>b)\\k",
                                          "[\\k]",
                                          "\\1",
                                          "(a)\\2",
                                          "\\8",
                                          "[\\1]",
                                          "\\00",
                                          "\\01",
                                          "[\\00]",
                                          "\\x",
                                          "\\x4",
                                          "\\xg1",
                                          "\\u",
                                          "\\u004",
                                          "\\u{",
                                          "\\u{}",
                                          "\\u{g}",
                                          "\\u{110000}",
                                          "\\u{41",
                                          "\\q",
                                          "\\e",
                                          "\\a",
                                          "\\A",
                                          "\\z",
                                          "\\Z",
                                          "\\G",
                                          "\\h",
                                          "\\R",
                                          "\\X",
                                          "\\i",
                                          "[\\q]",
                                          "[\\B]",
                                          "\\ud83d\\u004",
                                          "\\p",
                                          "\\pL",
                                          "\\p{",
                                          "\\p{}",
                                          "\\p{L",
                                          "\\p{Nope}",
                                          "\\p{l}",
                                          "\\p{letter}",
                                          "\\p{Greek}",
                                          "\\p{Script}",
                                          "\\p{Script=}",
                                          "\\p{Script=Klingon}",
                                          "\\p{sc=greek}",
                                          "\\p{gc=}",
                                          "\\p{gc=Greek}",
                                          "\\p{ L}",
                                          "\\p{L }",
                                          "\\p{L=Lu}",
                                          "\\P{Nope}",
                                          "[\\p{Nope}]",
                                          "\\p{^L}",
                                          "\\p{Emoji=Yes}",
                                          "\\p{IsGreek}",
                                          "\\p{InGreek}",
                                          "\\p{Block=Greek}",
                                          "(?",
                                          "(?)",
                                          "(?a)",
                                          "(?P<n>a)",
                                          "(?P=n)",
                                          "(?'n'a)",
                                          "(?i)a",
                                          "(?i",
                                          "(?-:a)",
                                          "(?ii:a)",
                                          "(?x:a)",
                                          "(?>a)",
                                          "(?|a)",
                                          "(?#a)",
                                          "(?<>a)",
                                          "(?<1>a)",
                                          "(?<a",
                                          "(?<a-b>c)",
                                          "(?<a b>c)",
                                          "(?<n>a)(?<n>b)",
                                          "(?<n>(?<n>a))",
                                          "(?<\xC3\xA9-\xC3\xB1>a)"};
const std::vector<std::string_view> lenient{
    "]",          "}",           "{",      "a{",    "a{x",     "a{2",     "a{2,",
    "a{2,x}",     "{a}",         "a*{",    "a{2}{", "[\\w-.]", "[\\w-a]", "[a-\\d]",
    "[\\d-\\w]",  "[.-\\s]",     "\\-",    "\\_",   "\\@",     "\\ ",     "\\!",
    "\\'",        "\\\"",        "\\%",    "\\&",   "\\:",     "\\;",     "\\<",
    "\\\xC3\xA9", "[\\_\\@\\ ]", "[\\w-]", "\\}",   "a}",      "x{,y}",   "[]a]"};
const std::vector<std::string_view> not_regular{"(?<=a)b",
                                                "(?<!a)b",
                                                "(?<=(a))b",
                                                "(a)\\1",
                                                "\\1(a)",
                                                "(a)(b)\\2",
                                                "(?<a>b)\\k<a>",
                                                "\\k<a>(?<a>b)",
                                                "(?<a>b)\\k<\\u0061>",
                                                "\\p{Emoji}",
                                                "\\p{Alphabetic}",
                                                "\\p{Script=Thaana}",
                                                "\\p{sc=Copt}",
                                                "\\p{Script_Extensions=Greek}",
                                                "\\p{scx=Grek}",
                                                "[\\p{White_Space}]",
                                                "\\P{ID_Start}"};

std::string verdict_of(std::string_view text) {
  try {
    const Pattern pattern(text);
  } catch (const tooldecode::Error& error) {
    return std::string(name(error.code()));
  }
  return "right";
}

}  // namespace

TEST_CASE("Pattern accepts what ECMA-262 accepts and rejects what is malformed or not regular") {
  for (const auto& [list, verdict] : {std::pair{&right, "right"},
                                      {&lenient, "right"},
                                      {&wrong, "malformed_pattern"},
                                      {&not_regular, "unsupported_pattern"}}) {
    for (const std::string_view text : *list) {
      INFO(text);
      CHECK(verdict_of(text) == verdict);
    }
  }
  // From a later edition (https://tc39.es/ecma262/#sec-patterns): modifiers, names in alternatives.
  for (const std::string_view text : {"(?i:a)", "(?-i:a)", "(?im-s:a)"}) {
    CHECK(verdict_of(text) == "unsupported_pattern");
  }
  CHECK(verdict_of("(?<n>a)|(?<n>b)") == "right");
  CHECK(verdict_of("(?:(?<n>a)|(?<n>b))(?<n>c)") == "malformed_pattern");
  // A syntax error takes precedence over an unsupported part.
  CHECK(verdict_of("(?<=a)b(") == "malformed_pattern");
  CHECK(verdict_of("\\p{Emoji}**") == "malformed_pattern");
}

TEST_CASE("Pattern reads surrogate pairs as one character and single surrogates as none") {
  CHECK(set_of("[\\ud800-\\udfff]").empty());
  CHECK(set_of("[^\\ud800-\\udfff]") == CodePointSet::all());
  CHECK(set_of("[\\u0000-\\udbff]") == CodePointSet{{0, 0xD7FF}});
  CHECK(set_of("[\\udc00-\\uffff]") == CodePointSet{{0xE000, 0xFFFF}});
  CHECK(set_of("[\\ud800-\\udfff-]") == CodePointSet{{'-', '-'}});
  CHECK(set_of("[\\ud800a-c]") == CodePointSet{{'a', 'c'}});
  CHECK(set_of("[\\ud83d\\ude00-\\ud83d\\ude4f]") == CodePointSet{{0x1F600, 0x1F64F}});
  CHECK(set_of("[\\ud83d-\\ud83d\\ude00]") ==
        CodePointSet{{0xE000, 0x1F600}});  // from a lone surrogate to a pair
  CHECK(set_of("[\\ud83d\\u0041]") == CodePointSet{{'A', 'A'}});
  CHECK(set_of("[\\u{d83d}\\u{de00}]").empty());  // two single surrogates, not a pair
  CHECK(set_of("\\uD83D\\uDE00") == CodePointSet{{0x1F600, 0x1F600}});
}

TEST_CASE("Pattern errors name the byte where the malformed part begins") {
  CHECK(place_of("ab[z-a]") == "byte 3");
  CHECK(place_of("a)b") == "byte 1");
  CHECK(place_of("a(b(c)") == "byte 1");
  CHECK(place_of("(?<=a)") == "byte 0");
  CHECK(place_of("a{,3}") == "byte 1");
  CHECK(place_of("a{x") == "none");
  CHECK(place_of("^*") == "byte 1");
  CHECK(place_of("(?=a)+") == "byte 5");
  CHECK(place_of("(^)+") == "none");
  CHECK(place_of("^a{2}{3}$") == "byte 5");
  CHECK(place_of("\xC3\xA9\xF0\x9F\x98\x80**") == "byte 7");
  CHECK(place_of("x\\p{Klingon}") == "byte 1");
  CHECK(place_of("a\xC3") == "byte 1");
  CHECK(place_of("\xED\xA0\x80") == "byte 0");  // a surrogate encoded in three bytes
  CHECK(place_of("\xEF\xBF\xBD") == "none");
  CHECK(place_of(std::string(60'000, 'a')) == "");
  CHECK(place_of(std::string(50, '(') + std::string(50, ')')) == "none");
}

TEST_CASE("Pattern throws limit_exceeded for deep nesting and large classes") {
  CHECK(verdict_of(std::string(300, '(') + std::string(300, ')')) == "limit_exceeded");
  CHECK(verdict_of("[^\\d]" + std::string(60'000, 'a')) == "limit_exceeded");
  // A repeated property has one set; different classes have one each.
  std::string same, other;
  for (char32_t c = 0; c < 2000; ++c) {
    same += "\\p{L}";
    other += "[\\p{L}";
    tooldecode::text::append_utf8(other, 0x2190 + c);
    other += "]";
  }
  CHECK(Pattern(same).sets().size() == 1);
  CHECK(verdict_of(other) == "limit_exceeded");
}
