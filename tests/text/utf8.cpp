#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/utf8.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("find_code_point reads each code point that append_utf8 writes, except surrogates") {
  for (std::uint32_t value = 0; value <= 0x10FFFF; ++value) {
    std::string text;
    append_utf8(text, value);
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    const auto point     = find_code_point(text, 0);
    if (surrogate ? point.has_value()
                  : !point || point->value != value || point->bytes != text.size()) {
      FAIL("U+" << std::hex << value);
    }
  }
}

TEST_CASE("is_utf8 rejects overlong, truncated, surrogate and out-of-range sequences of RFC 3629") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
  for (const std::string bad :
       {"\x80", "\xC3", "\xC0\xAF", "\xC1\x81", "\xE0\x80\xAF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x80\x80\xAF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82",
        "\xE2\x28\xA1"}) {
    INFO(bad);
    CHECK_FALSE(is_utf8(bad));
    CHECK_FALSE(is_utf8("a" + bad));
    CHECK_FALSE(is_utf8(bad + "a"));
  }
  CHECK_FALSE(find_code_point("a", 1));
}

TEST_CASE("is_utf8 accepts exactly the 1920 sequences of two bytes") {
  int valid = 0;
  for (unsigned a = 0x80; a < 0x100; ++a) {
    for (unsigned b = 0; b < 0x100; ++b) {
      const std::string text{static_cast<char>(a), static_cast<char>(b)};
      valid += is_utf8(text) ? 1 : 0;
    }
  }
  CHECK(valid == 0x800 - 0x80);
}

using tooldecode::text::Utf8Stream;

namespace {

std::string in_pieces(std::string_view bytes, std::size_t size) {
  Utf8Stream stream;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += size) text += stream.push(bytes.substr(i, size));
  return text + stream.finish();
}

}  // namespace

TEST_CASE("Utf8Stream returns whole characters and replaces invalid bytes by U+FFFD") {
  const std::string replaced                        = "\xEF\xBF\xBD";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"aé€😀", "aé€😀"},
      {"a\xFF"
       "b",
       "a" + replaced + "b"},
      {"\xE2\x82", replaced + replaced},
      {"\xC0\x80", replaced + replaced},
      {"\xED\xA0\x80", replaced + replaced + replaced},
      {"\xF0\x9F\x98", replaced + replaced + replaced}};
  for (const auto& [bytes, text] : cases) {
    CAPTURE(bytes);
    for (std::size_t size = 1; size <= 5; ++size) CHECK(in_pieces(bytes, size) == text);
  }
  Utf8Stream stream;
  CHECK(stream.push("\xE2").empty());
  CHECK(stream.push("\x82").empty());
  CHECK(stream.push("\xAC") == "€");
}
