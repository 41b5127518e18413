#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using test::accepts;

namespace {

Dfa one_of(const CodePointSet& set) {
  return utf8_lexeme(TextDfa({set}, {{{1}, false}, {{TextDfa::dead}, true}}));
}

std::string utf8(char32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

}  // namespace

TEST_CASE("utf8_lexeme accepts each code point of its set and no other") {
  const Dfa any  = one_of(~CodePointSet{{'\n', '\n'}});
  const Dfa some = one_of({{0x7F, 0x90}, {0x7FF, 0x801}, {0xFFFF, 0x10001}, {0x10FFFF, 0x10FFFF}});
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x810 || (c > 0xFFF0 && c < 0x10010) ? 1 : 0x7F3) {
    const bool is_surrogate = c >= 0xD800 && c <= 0xDFFF;
    const bool is_in        = (c >= 0x7F && c <= 0x90) || (c >= 0x7FF && c <= 0x801) ||
                       (c >= 0xFFFF && c <= 0x10001) || c == 0x10FFFF;
    if (accepts(any, utf8(c)) != (c != '\n' && !is_surrogate)) FAIL("any: " << unsigned(c));
    if (accepts(some, utf8(c)) != is_in) FAIL("some: " << unsigned(c));
  }
  CHECK(accepts(some, utf8(0x10FFFF)));
}

TEST_CASE("utf8_lexeme accepts strict UTF-8 only") {
  const Dfa any = one_of(CodePointSet::all());
  std::mt19937 random(3);
  std::size_t valid = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string bytes;
    static const std::string leads = "\xC0\xC1\xC2\xDF\xE0\xE1\xED\xEF\xF0\xF3\xF4\xF5\x80z";
    bytes.push_back(leads[random() % leads.size()]);
    for (std::size_t n = random() % 4; n > 0; --n)
      bytes.push_back(static_cast<char>(random() % 8 ? 0x80 + random() % 64 : random() % 256));
    const std::u32string text = decode_utf8(bytes);
    const bool is_one         = text.size() == 1 && utf8(text[0]) == bytes;
    valid += is_one;
    if (accepts(any, bytes) != is_one) FAIL("bytes " << i);
  }
  CHECK(valid > 300);
}

TEST_CASE("utf8_lexeme of a repeated set accepts any number of its characters") {
  const Dfa run = utf8_lexeme(TextDfa::repeated({{'a', 'a'}, {0xE9, 0xE9}}));
  CHECK(accepts(run, ""));
  CHECK(accepts(run, "a\u00E9a"));
  CHECK_FALSE(accepts(run, "a\xC3"));
  CHECK(utf8_lexeme(TextDfa({}, {})).empty());
}
