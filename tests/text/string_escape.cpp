#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/text/string_escape.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using tooldecode::text::StringEscape;
using tooldecode::text::ValueSyntax;

namespace {

// A numeric escape of a character, with digits of random case.
std::string numbered(char32_t c, ValueSyntax syntax, std::mt19937& random) {
  const auto digits = [&](char32_t value, int count) {
    std::string result;
    while (count-- > 0) {
      const char digit = "0123456789abcdef"[value >> 4 * count & 15];
      result += random() % 2 && digit > '9' ? static_cast<char>(digit - 32) : digit;
    }
    return result;
  };
  if (syntax == ValueSyntax::python) {
    if (c < 0x100 && random() % 2) return "\\x" + digits(c, 2);
    if (c > 0xFFFF || random() % 2) return "\\U" + digits(c, 8);
  }
  if (c <= 0xFFFF) return "\\u" + digits(c, 4);
  return "\\u" + digits(0xD800 + ((c - 0x10000) >> 10), 4) + "\\u" +
         digits(0xDC00 + (c & 0x3FF), 4);
}

std::string in_small(std::string bytes) {
  for (std::size_t k = 2; k < bytes.size(); ++k) {
    if (bytes[k] >= 'A' && bytes[k] <= 'F') bytes[k] += 'a' - 'A';
  }
  return bytes;
}
// All numeric escapes of a character, with lower-case digits.
std::vector<std::string> small_numbers(char32_t c, ValueSyntax syntax) {
  std::vector<std::string> forms;
  std::mt19937 random(5);
  for (int i = 0; i < 64; ++i) {
    const std::string one = in_small(numbered(c, syntax, random));
    if (std::find(forms.begin(), forms.end(), one) == forms.end()) forms.push_back(one);
  }
  return forms;
}

}  // namespace

TEST_CASE(
    "StringEscape reads a numeric escape and knows at each byte which characters it may become",
    "[string_escape]") {
  std::mt19937 random(3);
  const std::vector<char32_t> characters{0,       9,       'a',     '"',     '/',    0x7F,
                                         0xE9,    0xEA,    0x20AC,  0xD7FF,  0xE000, 0xFFFF,
                                         0x10000, 0x1F600, 0x1F601, 0x10FFFF};
  for (int i = 0; i < 300; ++i) {
    const auto syntax       = i % 2 ? ValueSyntax::python : ValueSyntax::json;
    const char32_t c        = characters[random() % characters.size()];
    const std::string bytes = numbered(c, syntax, random);
    INFO("seed 3, " << bytes);
    StringEscape escape(syntax);
    for (std::size_t at = 1; at < bytes.size(); ++at) {
      REQUIRE(escape.may_become(c));
      REQUIRE_FALSE(escape.character());
      const auto byte = static_cast<std::uint8_t>(bytes[at]);
      REQUIRE(escape.next().contains(byte));
      // Its value and places, or its text, rebuild an equal escape.
      StringEscape again(syntax, escape.value(), escape.places()), spelt(syntax);
      for (const char b : escape.text().substr(1)) {
        REQUIRE(spelt.read(static_cast<std::uint8_t>(b)));
      }
      REQUIRE(spelt.value() == escape.value());
      REQUIRE(spelt.places() == escape.places());
      REQUIRE(escape.read(byte));
      REQUIRE(again.read(byte));
      REQUIRE(again.character() == escape.character());
      for (const char32_t other : characters) {
        // may_become holds if an escape of the other character begins with these bytes.
        const auto forms  = small_numbers(other, syntax);
        const bool shares = std::any_of(forms.begin(), forms.end(), [&](const std::string& form) {
          return form.starts_with(in_small(bytes.substr(0, at + 1)));
        });
        REQUIRE(escape.may_become(other) == shares);
      }
    }
    REQUIRE(escape.character() == c);
    REQUIRE_FALSE(escape.read('0'));
    REQUIRE(escape.next().empty());
  }
}

TEST_CASE("StringEscape rejects malformed escapes in JSON and in Python", "[string_escape]") {
  const auto reads = [](ValueSyntax syntax, const char* bytes) {
    StringEscape escape(syntax);
    for (; *bytes != 0; ++bytes) {
      if (!escape.read(static_cast<std::uint8_t>(*bytes))) return false;
    }
    return escape.character().has_value();
  };
  for (const char* one : {"n", "/", "\"", "u0041", "ud83d\\ude00", "uD83D\\uDE00"}) {
    CHECK(reads(ValueSyntax::json, one));
  }
  for (const char* one : {"a", "'", "x41", "U0001f600", "u004g", "ude00", "ud83d", "ud83dn",
                          "ud83d\\n", "ud83d\\u0041", "ud83d\\ud83d", "U", ""}) {
    CHECK_FALSE(reads(ValueSyntax::json, one));
  }
  for (const char* one : {"a", "v", "'", "\"", "x4a", "u00E9", "U0001f600", "U0010FFFF"}) {
    CHECK(reads(ValueSyntax::python, one));
  }
  for (const char* one : {"/", "0", "101", "N", "d", "x4", "ud83d", "U00110000", "U0000dc00"}) {
    CHECK_FALSE(reads(ValueSyntax::python, one));
  }
}

TEST_CASE("StringEscape::quoted writes the shortest form of a text in JSON and in Python",
          "[string_escape]") {
  const std::string text = "a\"'\\/\n\x0B\x7F\xC3\xA9";
  CHECK(StringEscape::quoted(text, ValueSyntax::json, '"') == nlohmann::json(text).dump());
  CHECK(StringEscape::quoted(text, ValueSyntax::python, '\'') ==
        "'a\"\\'\\\\/\\n\\x0b\x7F\xC3\xA9'");
  CHECK(StringEscape::quoted(text, ValueSyntax::python, '"') ==
        "\"a\\\"'\\\\/\\n\\x0b\x7F\xC3\xA9\"");
  std::string either;
  StringEscape::append(either, '\'', ValueSyntax::python, 0);
  StringEscape::append(either, '"', ValueSyntax::json, 0);
  CHECK(either == "\\'\\\"");
}
