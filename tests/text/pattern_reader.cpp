#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/pattern_reader.hpp>

#include <support/catch.hpp>

using tooldecode::Errc;
using tooldecode::Error;
using tooldecode::text::CodePointSet;
using tooldecode::text::PatternReader;

TEST_CASE("PatternReader reads characters, escapes, classes and digits in turn") {
  PatternReader text("\\u00e9[a\\-\\d]x007,\xC3\xA9");
  REQUIRE(text.take('\\'));
  const PatternReader::Member letter = text.escape();
  CHECK(letter.code == char32_t{0xE9});
  REQUIRE(text.take('['));
  CHECK(text.bracket() == CodePointSet{{'-', '-'}, {'0', '9'}, {'a', 'a'}});
  CHECK(text.any("a letter") == 'x');
  CHECK(text.digits() == U"7");
  CHECK(text.has(','));
  CHECK(text.has(0xE9, 1));
  CHECK_FALSE(text.take(0xE9));
  text.go_to(text.at() + 2);
  CHECK(text.at_end());
  CHECK(text.place(text.at()) == "byte 20");
  CHECK_THROWS_AS(text.any("one more"), Error);
}

TEST_CASE(
    "PatternReader::escape returns no code point for a class and returns one for a surrogate") {
  for (const char* one_class : {"\\d", "\\W", "\\s", "\\p{Lu}", "\\P{Lu}"}) {
    PatternReader text(one_class);
    REQUIRE(text.take('\\'));
    CHECK_FALSE(text.escape().code);
  }
  PatternReader text("\\ud800");
  REQUIRE(text.take('\\'));
  const PatternReader::Member alone = text.escape();
  CHECK(alone.code == char32_t{0xD800});
  CHECK(alone.set.empty());
}

TEST_CASE("PatternReader::group_name accepts identifiers and throws on other names") {
  const auto name_of = [](std::string_view pattern) {
    PatternReader text(pattern);
    return text.group_name();
  };
  CHECK(name_of("a1_$>") == U"a1_$");
  CHECK(name_of("\\u0061\\u{62}>") == U"ab");
  CHECK(name_of("\xC3\xA9\xD9\xA1>") == U"\u00E9\u0661");  // a digit may follow a letter
  for (const char* wrong : {">", "1>", "a-b>", "a", "\xD9\xA1>", "\\x41>", "a b>"}) {
    INFO(wrong);
    CHECK_THROWS_AS(name_of(wrong), Error);
  }
}

TEST_CASE("PatternReader::check throws the first refusal") {
  PatternReader text("abc");
  text.check();
  text.refuse("first", 1);
  text.refuse("second", 0);
  try {
    text.check();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsupported_pattern);
    CHECK(error.where() == "byte 1");
  }
}
