#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/pre_tokenizer.hpp>
#include <tooldecode/vocabulary/white_space.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::vocabulary::with_unicode_white_space;
using Pieces = std::vector<std::string_view>;

TEST_CASE("without_first_spaces and without_last_spaces remove white space of all scripts") {
  using td::vocabulary::without_first_spaces, td::vocabulary::without_last_spaces;
  CHECK(without_first_spaces(" \t\n\u3000\u00A0a b ") == "a b ");
  CHECK(without_last_spaces(" a b\u2003 \u0085\r\n") == " a b");
  CHECK(without_first_spaces("\u200Ba") == "\u200Ba");  // no white space
  CHECK(without_first_spaces(" \n ").empty());
  CHECK(without_last_spaces(" \n ").empty());
  CHECK(without_last_spaces("").empty());
  // Invalid UTF-8 is no white space.
  CHECK(without_first_spaces("\xFF a") == "\xFF a");
  CHECK(without_last_spaces("a \xA0") == "a \xA0");
  CHECK(without_last_spaces("\x80\x80") == "\x80\x80");
}

TEST_CASE("with_unicode_white_space replaces escapes outside and inside of classes") {
  const std::string white =
      R"(\x{9}-\x{d}\x{20}-\x{20}\x{85}-\x{85}\x{a0}-\x{a0}\x{1680}-\x{1680}\x{2000}-\x{200a})"
      R"(\x{2028}-\x{2029}\x{202f}-\x{202f}\x{205f}-\x{205f}\x{3000}-\x{3000})";
  CHECK(with_unicode_white_space(R"(\s+|[^\sa])") == '[' + white + "]+|[^" + white + "a]");
  CHECK(with_unicode_white_space(R"([]\s])") == "[]" + white + ']');
  CHECK(with_unicode_white_space(R"([[:alpha:]\s]\s)") ==
        "[[:alpha:]" + white + "][" + white + ']');
  for (const std::string same : {R"(\\s\[s\])", R"(\Q\s\E)", R"([\\s[:space:]]\p{Z})", "\\Qa", ""})
    CHECK(with_unicode_white_space(same) == same);
}

TEST_CASE("PreTokenizer with white space in its pattern leaves U+180E to other characters") {
  const td::vocabulary::PreTokenizer spaces({R"(\s+)"});
  CHECK(spaces.split("a \u180E\u2003b") == Pieces{"a", " ", "\u180E", "\u2003", "b"});
  const td::vocabulary::PreTokenizer words({R"([^\s]+|[\S])"});
  CHECK(words.split("a\u180E \u3000b") == Pieces{"a\u180E", " \u3000", "b"});
  CHECK(td::vocabulary::PreTokenizer({R"([\S\n]+)"}).split("a\n\u180E b") ==
        Pieces{"a\n\u180E", " ", "b"});
}
