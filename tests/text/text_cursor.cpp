#include <cstddef>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/text_cursor.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;

namespace {

struct Reader : text::TextCursor<Errc::malformed_grammar, Errc::unsupported_keyword> {
  using TextCursor::character, TextCursor::fail, TextCursor::has, TextCursor::hex, TextCursor::peek,
      TextCursor::refuse, TextCursor::take;
  explicit Reader(std::string_view text) : TextCursor(text) {}
  [[nodiscard]] std::size_t at() const { return at_; }
};

using test::error_of;

}  // namespace

TEST_CASE("TextCursor::take moves past a text that comes next and stays before any other") {
  Reader reader("ab");
  CHECK_FALSE(reader.take("b"));
  CHECK_FALSE(reader.take("abc"));
  CHECK(reader.peek() == 'a');
  CHECK(reader.peek(1) == 'b');
  CHECK(reader.peek(2) == '\0');
  CHECK(reader.take("a"));
  CHECK(reader.has("b"));
  CHECK(reader.at() == 1);
  CHECK(reader.take(""));
  CHECK(reader.take("b"));
  CHECK_FALSE(reader.has("b"));
}

TEST_CASE("TextCursor::character reads the characters of random texts one after another") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    INFO("seed 1, round " << round);
    std::u32string characters;
    std::string text;
    for (auto n = random() % 8; n > 0; --n) {
      char32_t c = static_cast<char32_t>(random() % (1U << (7 + random() % 14)));
      if (c >= 0xD800 && c <= 0xDFFF) c = 0xE000;
      characters.push_back(c);
      text::append_utf8(text, c);
    }
    Reader reader(text);
    for (const char32_t c : characters) CHECK(reader.character() == c);
    CHECK(reader.at() == text.size());
    CHECK(error_of([&] { return reader.character(); }) ==
          "malformed_grammar byte " + std::to_string(text.size()));
  }
  for (const char* text : {"\xC3", "\x80", "\xED\xA0\x80", "\xC0\x80"}) {
    Reader reader(text);
    CHECK(error_of([&] { return reader.character(); }) == "malformed_grammar byte 0");
  }
}

TEST_CASE("TextCursor::hex reads what printf writes and names the byte that is no digit") {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    INFO("seed 2, round " << round);
    const auto number = static_cast<unsigned>(random());
    char digits[9];
    std::snprintf(digits, sizeof digits, round % 2 ? "%08x" : "%08X", number);
    CHECK(Reader(digits).hex(8) == number);
  }
  Reader reader("a1g");
  CHECK(error_of([&] { return reader.hex(4); }) == "malformed_grammar byte 2");
}

TEST_CASE("TextCursor's errors have the codes of its template arguments") {
  CHECK(error_of([] {
          Reader::fail("no", 3);
          return 0;
        }) == "malformed_grammar byte 3");
  CHECK(error_of([] {
          Reader::refuse("no", 4);
          return 0;
        }) == "unsupported_keyword byte 4");
}
