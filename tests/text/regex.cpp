#include <cstdint>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/slow_matcher.hpp>

namespace {

using tooldecode::text::append_utf8;
using tooldecode::text::compile_pattern;
using tooldecode::text::decode_utf8;
using tooldecode::text::Dfa;
using tooldecode::text::Occurrences;
using tooldecode::text::TextDfa;

bool matches(std::string_view pattern, std::string_view text) {
  return compile_pattern(pattern).accepts(decode_utf8(text));
}

std::string error_of(std::string_view pattern) {
  try {
    (void)compile_pattern(pattern);
  } catch (const tooldecode::Error& error) {
    return std::string(name(error.code())) + ": " + error.where();
  }
  return "none";
}

// A random pattern over a, b and c in the syntax that std::regex shares. Lookaheads contain no
// assertion on earlier text: libstdc++ takes their beginning for the beginning of the text.
std::string random_pattern(std::mt19937& random, int depth, bool looks_behind = true) {
  const auto part = [&] { return random_pattern(random, depth - 1, looks_behind); };
  const auto pick = [&](const std::vector<std::string>& list) {
    return list[random() % list.size()];
  };
  switch (random() % (depth > 0 ? 10 : 3)) {
    case 0:
    case 1:
      return pick({"a", "b", "c"});
    case 2:
      if (looks_behind && random() % 4 == 0) return pick({"^", "\\b", "\\B"});
      return pick({".", "[ab]", "[^a]", "[a-c]", "\\w", "\\d", "\\S", "$"});
    case 3: {
      const std::string first = part();
      return first + "|" + part();
    }
    case 4: {
      const std::string body = part();
      return "(" + body + ")" + pick({"*", "+", "?", "*?", "{2}", "{1,2}", "{0,1}", "{1,}", "{0}"});
    }
    case 5:
      return "(?:" + part() + ")";
    case 6: {
      const std::string begin = pick({"(?=", "(?!"});
      return begin + random_pattern(random, depth - 1, false) + ")";
    }
    default: {
      const std::string first = part();
      return first + part();
    }
  }
}

// All texts of at most `length` letters.
std::vector<std::string> texts(std::size_t length) {
  std::vector<std::string> all{""};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == length) continue;
    for (const char c : {'a', 'b', 'c', '1'}) all.push_back(all[i] + c);
  }
  return all;
}

}  // namespace

TEST_CASE("compile_pattern matches where std::regex_search finds random patterns", "[regex]") {
  const std::vector<std::string> all = texts(5);
  for (std::uint32_t seed = 0; seed < tooldecode::test::cases(250); ++seed) {
    std::mt19937 random(seed);
    const std::string pattern = random_pattern(random, 3);
    if (error_of(pattern).starts_with("unsupported_pattern")) continue;  // a repeated lookahead
    const std::regex reference(pattern);
    const TextDfa dfa   = compile_pattern(pattern),
                  whole = tooldecode::text::compile_whole_pattern(pattern);
    std::string wrong;
    for (const std::string& text : all) {
      if (dfa.accepts(decode_utf8(text)) != std::regex_search(text, reference)) wrong += text + " ";
      if (whole.accepts(decode_utf8(text)) != std::regex_match(text, reference))
        wrong += text + "! ";
    }
    INFO("seed " << seed << ": " << pattern);
    CHECK(wrong == "");
  }
}

TEST_CASE("compile_pattern with length bounds accepts exactly the fitting texts without dead ends",
          "[regex]") {
  const std::vector<std::string> all = texts(5);
  for (std::uint32_t seed = 1000; seed < 1000 + tooldecode::test::cases(120); ++seed) {
    std::mt19937 random(seed);
    std::string pattern = random_pattern(random, 3);
    if (seed % 2) pattern = "^(?:" + pattern + ")$";
    if (error_of(pattern).starts_with("unsupported_pattern")) continue;
    const Occurrences length{
        static_cast<std::uint32_t>(random() % 4),
        random() % 3 ? static_cast<std::uint32_t>(random() % 6) : Occurrences::unbounded};
    TextDfa dfa             = compile_pattern(pattern);
    const TextDfa unbounded = dfa;
    Occurrences counted     = length;
    const bool free         = dfa.is_free_of_dead_ends(length);
    if (!free) dfa = dfa.bounded(length), counted = {};
    const auto lexeme = std::make_shared<const Dfa>(
        tooldecode::text::string_lexeme(dfa, tooldecode::text::ValueSyntax::json, '"'));
    INFO("seed " << seed << ": " << pattern << " of " << length.min << " to " << length.max);
    tooldecode::Grammar grammar;
    const auto node = grammar.lexeme(lexeme, counted);
    std::string wrong;
    for (const std::string& text : all) {
      const std::string literal = '"' + text + '"';
      const bool fits           = text.size() >= length.min && text.size() <= length.max;
      const bool ok             = fits && unbounded.accepts(decode_utf8(text));
      if (tooldecode::slow::matches(grammar, node, literal) != ok) wrong += text + " ";
      // The lexeme with its counter accepts a prefix exactly if a conforming text begins with it.
      if (lexeme->empty()) continue;
      Dfa::State state    = 0;
      std::uint32_t count = 0;
      bool passes         = true;
      for (std::size_t i = 0; i + 1 < literal.size() && passes; ++i) {
        const Dfa::State next = lexeme->next(state, static_cast<std::uint8_t>(literal[i]));
        passes = next != Dfa::dead && (!lexeme->boundary(state) || count < counted.max);
        if (passes && lexeme->boundary(state)) ++count;
        state = next;
      }
      const std::string_view prefix(literal.data(), literal.size() - 1);
      if (passes != tooldecode::slow::is_prefix(grammar, node, prefix)) wrong += text + "(dead) ";
    }
    CHECK(wrong == "");
  }
}

TEST_CASE("compile_pattern follows ECMA-262 in Unicode mode for classes, escapes and anchors",
          "[regex]") {
  CHECK(matches("^.$", "\xF0\x9F\x98\x80"));
  CHECK_FALSE(matches("^.$", "\n"));
  CHECK_FALSE(matches("^.$", "\xE2\x80\xA8"));  // U+2028
  CHECK(matches("^\\s+$", "\t\n\v\f\r \xC2\xA0\xE3\x80\x80\xEF\xBB\xBF"));
  CHECK_FALSE(matches("^\\d$", "\xD9\xA1"));  // ARABIC-INDIC DIGIT ONE
  CHECK(matches("^\\D\\W\\S$", "\xC3\xA9\xC3\xA9\xC3\xA9"));
  CHECK(matches("^\\u00e9\\xe9\\u{1F600}\\uD83D\\uDE00\\cA\\0$",
                std::string("\xC3\xA9\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80\x01\0", 14)));
  CHECK(matches("^[\\]\\-a\\b]+$", "]-a\b"));
  CHECK(matches("^[a-]$", "-"));
  CHECK(matches("^[^]$", "\n"));
  CHECK(compile_pattern("[]").empty());
  CHECK(matches("^\\^\\$\\\\\\.\\*\\/$", "^$\\.*/"));
  CHECK(compile_pattern("a^b").empty());
  CHECK(compile_pattern("a$b").empty());
  CHECK(matches("(^a|b$)", "ax"));
  CHECK(matches("(^a|b$)", "xb"));
  CHECK_FALSE(matches("(^a|b$)", "xa"));
  CHECK(matches("^^$$", ""));
  CHECK(matches("", "anything"));
  CHECK(matches("^(?<year>\\d{4})-\\d{2}$", "2024-01"));
}

TEST_CASE(
    "compile_pattern of a counted repeat needs states linear in the count and bounded steps") {
  const std::pair<const char*, const char*> families[] = {{"^\\p{L}{1,", "}$"},
                                                          {"^(a|b){0,", "}c$"},
                                                          {"(?:foo|bar|b.z){1,", "}x$"},
                                                          {"^([a-z]+-){0,", "}[0-9]$"}};
  for (const auto& [before, after] : families) {
    std::vector<std::uint64_t> steps, bytes;
    std::vector<std::size_t> states;
    for (const int n : {100, 200, 400}) {
      const std::string pattern = before + std::to_string(n) + after;
      INFO(pattern);
      const tooldecode::BuildBudget budget;
      states.push_back(compile_pattern(pattern).rows().size());
      steps.push_back(budget.spent().steps), bytes.push_back(budget.spent().bytes);
      CHECK(states.back() < 10'000);
    }
    for (const std::size_t i : {1U, 2U}) {
      INFO(before << i);
      CHECK(states[i] <= 2 * states[i - 1]);
      CHECK(steps[i] < 5 * steps[i - 1]);
      CHECK(bytes[i] < 5 * bytes[i - 1]);
    }
  }
}

TEST_CASE(
    "compile_pattern takes loops whose body begins with an assertion and ends with a look-ahead",
    "[regex]") {
  const std::vector<std::string> all = texts(5);
  for (const char* pattern :
       {"^(?:(?:\\ba|b)(?!c))*$", "^(?:(?:^a|b)(?=[ab]))*c", "^(?:(?:a|\\Bb)(?=[abc])){1,1000}c$",
        "^(?:(?:\\ba)+(?=1|$)|1)*$", "^(?:(?:\\ba|b)(?!c)(?:\\B1|a)?(?=.))*[bc]$"}) {
    const std::regex reference(pattern);
    const TextDfa dfa = compile_pattern(pattern);
    std::string wrong;
    for (const std::string& text : all) {
      if (dfa.accepts(decode_utf8(text)) != std::regex_search(text, reference)) wrong += text + " ";
    }
    INFO(pattern);
    CHECK(wrong == "");
  }
}

TEST_CASE("compile_pattern of many alternatives keeps no copy of them for each that it leaves out",
          "[regex]") {
  std::string pattern = "^(?:";
  for (int i = 0; i < 2000; ++i) pattern += "item" + std::to_string(10'000 + i) + '|';
  pattern.back() = ')';
  pattern += '$';
  const tooldecode::BuildBudget budget;
  const TextDfa dfa = compile_pattern(pattern);
  CHECK(budget.spent().steps < 3'000'000);
  CHECK(dfa.accepts(U"item10000"));
  CHECK(dfa.accepts(U"item11999"));
  CHECK_FALSE(dfa.accepts(U"item12000"));
  CHECK_FALSE(dfa.accepts(U"item1000"));
}

TEST_CASE("compile_pattern matches no text with a surrogate") {
  for (const std::string& text : texts(2)) {
    CHECK_FALSE(matches("[\\ud800-\\udfff]", text));
    CHECK(matches("^[^\\ud800-\\udfff]*$", text));
  }
  CHECK(compile_pattern("^[\\ud800-\\udfff]$").empty());
  CHECK(compile_pattern("\\ud800").empty());
  CHECK_FALSE(matches("^[\\ud800-\\udfff]$", "-"));
  CHECK(matches("^[^\\ud800-\\udfff]*$", "a-b\xF0\x9F\x98\x80"));
  CHECK(matches("^[\\u0000-\\udbff]*$", "abc"));
  CHECK_FALSE(matches("^[\\u0000-\\udbff]*$", "\xEE\x80\x80"));  // U+E000
  CHECK(matches("^[\\ud83d\\ude00-\\ud83d\\ude4f]$", "\xF0\x9F\x98\x81"));
  CHECK_FALSE(matches("^[\\ud83d\\ude00-\\ud83d\\ude4f]$", "\xF0\x9F\x99\x90"));
}

TEST_CASE(
    "compile_pattern throws an error that tells unsupported, malformed and large patterns, and where",
    "[regex]") {
  using Faults = std::vector<std::pair<const char*, int>>;  // and the byte of the fault
  for (const auto& [pattern, byte] : Faults{{"(?<=a)", 0},
                                            {"b(?<!a)", 1},
                                            {"(a)\\1", 3},
                                            {"(?<a>b)\\k<a>", 7},
                                            {"\\p{Emoji}", 0},
                                            {"é(?i:a)", 2}}) {
    INFO(pattern);
    CHECK(error_of(pattern) == "unsupported_pattern: byte " + std::to_string(byte));
  }
  CHECK(error_of("(?:(?=a))*") == "unsupported_pattern: ");
  for (const auto& [pattern, byte] : Faults{{"a(", 1},
                                            {")", 0},
                                            {"a)", 1},
                                            {"b[a", 1},
                                            {"*", 0},
                                            {"a{2,1}", 1},
                                            {"\\", 1},
                                            {"\\xZ1", 2},
                                            {"[b-a]", 1},
                                            {"é(?:a", 2},
                                            {"\\u{110000}", 9},
                                            {"a**", 2},
                                            {"ab\\q", 2},
                                            {"a{2}{3}", 4},
                                            {"\\p{Nope}", 0},
                                            {"(?i)a", 0},
                                            {"(?P<n>a)", 0},
                                            {"\\k<a>", 0},
                                            {"\\1", 0}}) {
    INFO(pattern);
    CHECK(error_of(pattern) == "malformed_pattern: byte " + std::to_string(byte));
  }
  for (const std::string& pattern :
       {std::string("^(.{300}){300}$"), std::string("(a|b)*a(a|b){20}$"), std::string(10'000, '('),
        std::string("a{1000001}")}) {
    INFO(pattern.substr(0, 20));
    CHECK(error_of(pattern).starts_with("limit_exceeded"));
  }
}

TEST_CASE("compile_pattern of a search for what may be empty matches every text, at any count") {
  for (const std::string& text : texts(3)) CHECK(matches("a{0,99999999999}", text));
}

TEST_CASE("compile_pattern of very many different characters is refused before they are divided") {
  const auto one_of = [](char32_t count) {
    std::string pattern = "^(?:";
    for (char32_t c = 0; c < count; ++c) {
      append_utf8(pattern, 0x4E00 + c);
      pattern += '|';
    }
    return pattern + "b)$";
  };
  CHECK(matches(one_of(3'000), "\u4E2D"));
  CHECK(error_of(one_of(20'000)).starts_with("limit_exceeded"));
}
