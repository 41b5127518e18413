#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/vocabulary/oniguruma_pattern.hpp>
#include <tooldecode/vocabulary/pre_tokenizer.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::vocabulary::translate_oniguruma;
using Pieces = std::vector<std::string_view>;

namespace {

Pieces split(const std::string& pattern, std::string_view text) {
  return td::vocabulary::PreTokenizer({translate_oniguruma(pattern)}).split(text);
}

std::string refusal(const std::string& pattern) {
  try {
    static_cast<void>(translate_oniguruma(pattern));
  } catch (const td::Error& error) {
    CHECK(error.code() == td::Errc::unknown_format);
    return error.what();
  }
  return "translated";
}

}  // namespace

TEST_CASE("translate_oniguruma leaves a pattern that means the same in both syntaxes") {
  for (const std::string pattern :
       {R"('s|'t| ?\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\n\p{L}\p{N}]?+\p{L}++|\P{Lu}{2,}?|(?<=a)b(?>c|d)\A\d)",
        "a.*?\u4E2D~#&", ""}) {
    INFO(pattern);
    std::string escaped = pattern;  // control characters are written by their numbers
    for (const auto& [from, to] : {std::pair{"\\r", "\\x{d}"}, std::pair{"\\n", "\\x{a}"}}) {
      for (std::size_t at = 0; (at = escaped.find(from, at)) != std::string::npos;)
        escaped.replace(at, 2, to);
    }
    CHECK(translate_oniguruma(pattern) == escaped);
  }
}

// Expected pieces are from the Python package `tokenizers` 0.23.3.
TEST_CASE("translate_oniguruma of classes in classes and intersections matches as Oniguruma") {
  CHECK(split("[a[bc]]+|.", "abcx") == Pieces{"abc", "x"});
  CHECK(split("[^a&&[ab]]+", "abcab") == Pieces{"a", "bc", "a", "b"});
  CHECK(split("[a-c[^a]&&b]", "abc") == Pieces{"a", "b", "c"});
  CHECK(split("[^[^a]]+", "aab") == Pieces{"aa", "b"});
  CHECK(split(R"([\p{L}&&[^\p{Han}]]+)", "ab\u4E2D\u4E2Dc1") ==
        Pieces{"ab", "\u4E2D\u4E2D", "c", "1"});
  CHECK(split(R"([\H1]+)", "ax1yb") == Pieces{"a", "x1y", "b"});
  CHECK(split(" ?[^(\\s|[.,!?\u2026\u3002])]+", "ab, c") == Pieces{"ab", ",", " c"});  // BLOOM
  CHECK(split("[\\w-]+", "a-b c") == Pieces{"a-b", " ", "c"});
}

TEST_CASE("translate_oniguruma of repeats, lines and escapes matches as Oniguruma") {
  CHECK(split(R"(\p{N}{1,3}+)", "1234") == Pieces{"1234"});
  CHECK(split("a{2}?", "aaaaa") == Pieces{"aa", "aa", "a"});
  CHECK(split("a{,2}", "aaaaa") == Pieces{"aa", "aa", "a"});
  CHECK(split("a{1,2}?", "aaa") == Pieces{"a", "a", "a"});
  CHECK(split("a{b+", "a{bb") == Pieces{"a{bb"});
  CHECK(split(R"(\s+$)", "a  \nb  ") == Pieces{"a", "  ", "\nb", "  "});
  CHECK(split(R"(^\p{L}+)", "ab\nab") == Pieces{"ab", "\n", "ab"});
  CHECK(split("^", "a\nb\n") == Pieces{"a\n", "b\n"});
  CHECK(split("$", "a\nb\n") == Pieces{"a", "\nb", "\n"});
  CHECK(split(R"(\h+|.)", "ab  ") == Pieces{"ab", " ", " "});
  CHECK(split(R"(\u0061+|.)", "aab") == Pieces{"aa", "b"});
  CHECK(split(R"(\v|\x{b}|\x0B)", "a\vb") == Pieces{"a", "\v", "b"});
  CHECK(split("a(?i)b|c", "aBCacab") == Pieces{"aB", "C", "ac", "ab"});
  // Script extensions are no part of a script, and \w has marks and some digits.
  CHECK(split(R"(\p{Han}+)", "\u4E2D\u3001") == Pieces{"\u4E2D", "\u3001"});
  CHECK(split(R"(\w+)", "e\u0301\u00B2 b") == Pieces{"e\u0301\u00B2", " ", "b"});
  // In a class it has no such digits.
  CHECK(split(R"([\w]+)", "e\u0301\u00B2 b") == Pieces{"e\u0301", "\u00B2 ", "b"});
  CHECK(split(R"([^\w\s]+)", "e\u00BD! b") == Pieces{"e", "\u00BD!", " b"});
  CHECK(split(R"([\W_]+)", "e\u00BD_b") == Pieces{"e", "\u00BD_", "b"});
  CHECK(split(R"(\W+)", "e\u00BD!b") == Pieces{"e\u00BD", "!", "b"});
}

TEST_CASE("translate_oniguruma refuses what it cannot translate and names the byte") {
  CHECK(refusal("a\\1") == "byte 3: the escape is not known");
  CHECK(refusal(R"(\bword)") == "byte 2: the escape is not known");
  CHECK(refusal(R"(\x80)") == "byte 4: a byte is no character");
  CHECK(refusal(R"(\uD800)") == "byte 2: a number is no character");
  CHECK(refusal(R"(\p{L)") == "byte 3: the property is not known");
  CHECK(refusal(R"(\pL)") == "byte 2: a property has no braces");
  CHECK(refusal("(?<name>a)") == "byte 1: the kind of the group is not known");
  CHECK(refusal("(?m:.)") == "byte 1: the kind of the group is not known");
  CHECK(refusal("(a") == "byte 2: a bracket is not closed");
  CHECK(refusal("a)") == "byte 1: a bracket is closed that is not open");
  CHECK(refusal("*a") == "byte 0: nothing is repeated");
  CHECK(refusal("a|{2}") == "byte 5: this is not repeated");
  CHECK(refusal("^*") == "byte 2: this is not repeated");
  CHECK(refusal("(a*)+") == "byte 5: what is repeated can be empty");
  CHECK(refusal("a{3,2}") == "byte 6: an interval is empty");
  CHECK(refusal("a+*+*+*+*+") == "byte 6: what is repeated can be empty");
  CHECK(refusal("a{2}{2}{2}{2}{2}") == "byte 16: this is not repeated");
  CHECK(refusal("[]") == "byte 1: a class is empty");
  CHECK(refusal("[a") == "byte 2: the pattern is cut short");
  CHECK(refusal("a\\") == "byte 2: the pattern is cut short");
  CHECK(refusal("[[:alpha:]]") == "byte 1: a class is within another");
  CHECK(refusal("[a-c-e]") == "byte 4: a range is not clear");
  CHECK(refusal("[\\w-.]") == "byte 4: a range is not clear");
  // Oniguruma also matches "\u00DF" here.
  CHECK(refusal("(?i:SS)") == "byte 6: case is ignored in letters that are also one character");
  CHECK(refusal("(?i:\u00E9)") == "byte 6: case is ignored outside of ASCII");
  CHECK(refusal("(?i:\\p{Lu})") == "byte 6: the escape is not known");
  CHECK(refusal(std::string(99, '(')) == "byte 51: groups are nested too deeply");
  std::string many = "[a";
  for (int i = 0; i < 60; ++i) many += "&&a";
  CHECK(refusal(many + ']') == "byte 155: too many classes intersect");
  CHECK(refusal(std::string(99, '[')) == "byte 51: classes are nested too deeply");
}

TEST_CASE("translate_oniguruma of altered patterns throws only Error") {
  const std::string good =
      R"([\p{Lu}\p{M}&&[^\p{Han}]]*(?i:'s|'t)?|[^\s[a-f]\-]{1,3}+|^\h+$|\u0061\x{180E}(?<=b))";
  std::uint64_t seed = 7;
  const auto draw    = [&](std::size_t below) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(seed >> 33) % below;
  };
  for (int round = 0; round < 3000; ++round) {
    std::string pattern = good.substr(0, draw(good.size() + 1));
    for (int i = 0; i < 3 && !pattern.empty(); ++i)
      pattern[draw(pattern.size())] =
          draw(4) == 0 ? static_cast<char>(draw(256)) : good[draw(good.size())];
    INFO(pattern);
    try {
      static_cast<void>(split(pattern, "ab\u4E2D 1-\n"));
    } catch (const td::Error&) {
      // the only exception that is allowed
    }
  }
}
