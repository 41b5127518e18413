#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/pre_tokenizer.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using Pieces = std::vector<std::string_view>;

TEST_CASE("PreTokenizer returns matches and the text between them") {
  const td::vocabulary::PreTokenizer digits({"[0-9]+"});
  CHECK(digits.split("ab12c3") == Pieces{"ab", "12", "c", "3"});
  CHECK(digits.split("ab") == Pieces{"ab"});
  CHECK(digits.split("").empty());
  CHECK(td::vocabulary::PreTokenizer().split("a b") == Pieces{"a b"});
}

TEST_CASE("PreTokenizer applies each pattern to the pieces of the one before") {
  // The second pattern sees "12345" alone; the third has no context after a piece.
  const td::vocabulary::PreTokenizer pieces({"[0-9]+", "[0-9]{3}", "a(?=1)"});
  CHECK(pieces.split("aa12345a") == Pieces{"aa", "123", "45", "a"});
}

// Expected pieces are from the Python package `tokenizers` 0.23.3.
TEST_CASE("PreTokenizer::of_splits treats matches of a text as their behavior says") {
  using td::vocabulary::SplitBehavior;
  const auto split = [](SplitBehavior behavior, bool inverted, std::string_view text) {
    return td::vocabulary::PreTokenizer::of_splits({{" ", true, behavior, inverted}}).split(text);
  };
  CHECK(split(SplitBehavior::isolated, false, "a  b ") == Pieces{"a", " ", " ", "b", " "});
  CHECK(split(SplitBehavior::removed, false, " a  b ") == Pieces{"a", "b"});
  CHECK(split(SplitBehavior::removed, true, " a  b ") == Pieces{" ", " ", " ", " "});
  CHECK(split(SplitBehavior::merged_with_previous, false, " a  b c") ==
        Pieces{" ", "a ", " ", "b ", "c"});
  CHECK(split(SplitBehavior::merged_with_previous, true, " a  b") == Pieces{" a", " ", " b"});
  CHECK(split(SplitBehavior::merged_with_next, false, "a  b ") == Pieces{"a", " ", " b", " "});
  CHECK(split(SplitBehavior::merged_with_next, true, "a  b") == Pieces{"a ", " ", "b"});
  CHECK(split(SplitBehavior::contiguous, false, "  a  bc") == Pieces{"  ", "a", "  ", "bc"});
  CHECK(split(SplitBehavior::contiguous, true, "a  b") == Pieces{"a", "  ", "b"});
  CHECK(split(SplitBehavior::removed, false, "").empty());
  CHECK(split(SplitBehavior::removed, false, "  ").empty());
  // A text is not read as a pattern.
  const auto dots = td::vocabulary::PreTokenizer::of_splits({{".", true}});
  CHECK(dots.split("a.b") == Pieces{"a", ".", "b"});
  CHECK_FALSE(dots.removes_text());
  CHECK(td::vocabulary::PreTokenizer::of_splits({{".", true, SplitBehavior::removed}})
            .removes_text());
  CHECK(td::vocabulary::PreTokenizer::of_splits({{"", true}}).split("ab") == Pieces{"ab"});
}

TEST_CASE("PreTokenizer patterns match letters, digits and spaces of all scripts") {
  const td::vocabulary::PreTokenizer gpt2(
      {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"});
  CHECK(gpt2.split("it's  \u00E9t\u00E9 \u0663!") ==
        Pieces{"it", "'s", " ", " \u00E9t\u00E9", " \u0663", "!"});
  CHECK(gpt2.split("a\u3000b") == Pieces{"a", "\u3000", "b"});
}

TEST_CASE("PreTokenizer returns invalid UTF-8 as pieces of one byte each") {
  const td::vocabulary::PreTokenizer words({"[a-z]+|\\s"});
  CHECK(words.split("ab\xFF"
                    "cd") == Pieces{"ab", "\xFF", "cd"});
  CHECK(words.split("\xC3") == Pieces{"\xC3"});
  CHECK(words.split("\xE0\x80\x80") == Pieces{"\xE0", "\x80", "\x80"});  // overlong
  CHECK(words.split("\xED\xA0\x80") == Pieces{"\xED", "\xA0", "\x80"});  // a surrogate
  CHECK(words.split("\xF4\x90\x80\x80") == Pieces{"\xF4", "\x90", "\x80", "\x80"});
  CHECK(words.split("\xF0\x9F\x8E\x89") == Pieces{"\xF0\x9F\x8E\x89"});

  std::uint64_t seed = 3;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      text += static_cast<char>(seed >> (seed >> 62 == 0 ? 56 : 40));
    }
    std::string joined;
    for (const std::string_view piece : words.split(text)) {
      CHECK_FALSE(piece.empty());
      joined += piece;
    }
    INFO("round " << round);
    CHECK(joined == text);
  }
}

// Expected pieces are from the Python package `tokenizers` 0.23.3.
TEST_CASE("PreTokenizer with a pattern that matches the empty text splits there") {
  CHECK(td::vocabulary::PreTokenizer({"x*"}).split("ab") == Pieces{"a", "b"});
  CHECK(td::vocabulary::PreTokenizer({"x*|a"}).split("xx\u00E9a") == Pieces{"xx", "\u00E9", "a"});
  CHECK(td::vocabulary::PreTokenizer({"(?=b)"}).split("abab") == Pieces{"a", "ba", "b"});
  CHECK(td::vocabulary::PreTokenizer({""}).split("ab") == Pieces{"a", "b"});
}

TEST_CASE("PreTokenizer matches a group that a long text repeats") {
  const std::string text = std::string(50'000, 'a') + "1";
  const td::vocabulary::PreTokenizer letters({"(?:(?=[^x])[a-z])*[a-z]+"});
  CHECK(letters.split(text) == Pieces{std::string_view(text).substr(0, 50'000), "1"});
}

TEST_CASE("PreTokenizer errors name the number and byte of a malformed pattern") {
  try {
    static_cast<void>(td::vocabulary::PreTokenizer({"a", "b("}));
    FAIL("nothing thrown");
  } catch (const td::Error& error) {
    CHECK(error.code() == td::Errc::malformed_pattern);
    CHECK(error.where() == "pre-tokenizer pattern 1, byte 2");
  }
}

TEST_CASE("PreTokenizer throws limit_exceeded for catastrophic backtracking") {
  const td::vocabulary::PreTokenizer nested({"(?:(?:x+x+)+)+y"});
  try {
    static_cast<void>(nested.split(std::string(64, 'x') + "!y"));
    FAIL("nothing thrown");
  } catch (const td::Error& error) {
    CHECK(error.code() == td::Errc::limit_exceeded);
  }
}

TEST_CASE("PreTokenizer::unknown throws on split, also after a copy") {
  const td::vocabulary::PreTokenizer unknown =
      td::vocabulary::PreTokenizer::unknown("here", "the pre-tokenizer \"x\" is not known");
  const td::vocabulary::PreTokenizer copy = unknown;
  for (const char* text : {"a b", ""}) {
    try {
      static_cast<void>(copy.split(text));
      FAIL("split");
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::unknown_format);
      CHECK(error.where() == "here");
    }
  }
}
