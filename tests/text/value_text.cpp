#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_text.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("append_float writes each finite double so that it reads back unchanged") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 50000; ++i) {
    const std::uint64_t bits = random();
    double value             = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    std::string text;
    append_float(text, value);
    CAPTURE(text);
    const double back = std::strtod(text.c_str(), nullptr);
    REQUIRE(std::memcmp(&back, &value, sizeof value) == 0);
    REQUIRE(parse_python_literal(text).is_number_float());
  }
}

TEST_CASE("append_any_string and append_ascii_string write strings as nlohmann does") {
  using Json = nlohmann::json;
  std::mt19937 random(11);
  const std::string some[] = {"a",        "\"",           "\\",
                              "\n",       "\x01",         "\x7f",
                              "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                              "\xFF",     "\xC3",         "\xE2\x82"};
  for (int round = 0; round < 5000; ++round) {
    std::string string;
    for (auto i = random() % 6; i > 0; --i) string += some[random() % std::size(some)];
    const bool is_whole = string.find_first_of("\xFF\xC3\xE2") == std::string::npos;
    CAPTURE(round, string);
    std::string any, ascii;
    text::detail::append_any_string(any, string);
    text::detail::append_ascii_string(ascii, string);
    // Writers differ in how many U+FFFD replace truncated bytes.
    if (is_whole) {
      std::string strict;
      append_json_string(strict, string);
      REQUIRE(strict == any);
      REQUIRE(any == Json(string).dump());
      REQUIRE(ascii == Json(string).dump(-1, ' ', true));
    }
    REQUIRE(Json::parse(ascii) == Json::parse(any));
    for (const char c : ascii) REQUIRE(static_cast<unsigned char>(c) < 0x80);
  }
}
