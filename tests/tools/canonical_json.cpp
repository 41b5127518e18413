#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/nlohmann.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/tools/canonical_json.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using Json = nlohmann::ordered_json;

namespace {

std::string canonical(std::string_view text) {
  return canonical_json(Json::parse(text));
}

std::vector<std::uint16_t> utf16(const std::vector<std::uint32_t>& points) {
  std::vector<std::uint16_t> units;
  for (const std::uint32_t point : points) {
    if (point < 0x10000) {
      units.push_back(static_cast<std::uint16_t>(point));
    } else {
      units.push_back(static_cast<std::uint16_t>(0xD800 + ((point - 0x10000) >> 10)));
      units.push_back(static_cast<std::uint16_t>(0xDC00 + ((point - 0x10000) & 0x3FF)));
    }
  }
  return units;
}

}  // namespace

TEST_CASE("canonical_json writes the numbers of RFC 8785's appendix B") {
  for (const auto& [bits, text] : std::vector<std::pair<std::uint64_t, std::string>>{
           {0x0000000000000000, "0"},
           {0x8000000000000000, "0"},
           {0x0000000000000001, "5e-324"},
           {0x8000000000000001, "-5e-324"},
           {0x7fefffffffffffff, "1.7976931348623157e+308"},
           {0xffefffffffffffff, "-1.7976931348623157e+308"},
           {0x4340000000000000, "9007199254740992"},
           {0xc340000000000000, "-9007199254740992"},
           {0x4430000000000000, "295147905179352830000"},
           {0x44b52d02c7e14af5, "9.999999999999997e+22"},
           {0x44b52d02c7e14af6, "1e+23"},
           {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
           {0x444b1ae4d6e2ef4e, "999999999999999700000"},
           {0x444b1ae4d6e2ef4f, "999999999999999900000"},
           {0x444b1ae4d6e2ef50, "1e+21"},
           {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
           {0x3eb0c6f7a0b5ed8d, "0.000001"},
           {0x41b3de4355555553, "333333333.3333332"},
           {0x41b3de4355555554, "333333333.33333325"},
           {0x41b3de4355555555, "333333333.3333333"},
           {0x41b3de4355555556, "333333333.3333334"},
           {0x41b3de4355555557, "333333333.33333343"},
           {0xbecbf647612f3696, "-0.0000033333333333333333"},
           {0x43143ff3c1cb0959, "1424953923781206.2"}}) {
    INFO(std::hex << bits);
    CHECK(canonical_json(Json(std::bit_cast<double>(bits))) == text);
  }
  for (const std::uint64_t bits : {0x7fffffffffffffffu, 0x7ff0000000000000u}) {
    CHECK_THROWS_AS(canonical_json(Json{{"a", std::bit_cast<double>(bits)}}), Error);
  }
}

TEST_CASE("canonical_json writes random doubles as the rfc8785 package does") {
  for (const auto& [bits, text] : std::vector<std::pair<std::uint64_t, std::string>>{
           {0xf2a74de452e6b438, "-1.989032661366619e+244"},
           {0x6513270e269e0d37, "7.761117632285041e+178"},
           {0x0c5c7fd0a6a3a450, "3.980498358697587e-249"},
           {0xd23f0824128b2f33, "-1.5432835417340557e+88"},
           {0x1818e811892f902b, "1.3647584518757569e-192"},
           {0x9531985d5d9dc9f8, "-1.3701135617873088e-206"},
           {0xe8e25d940ed90475, "-1.7160537630466207e+197"},
           {0x36f675cc81e74ef5, "6.294675241195386e-44"},
           {0x1600a35a099950d8, "1.0613447212142254e-202"},
           {0x6b0d549b6f03675a, "4.708325160387546e+207"},
           {0x3d9c172411e20b8f, "6.387016158513563e-12"},
           {0x8d116ece1738f7d9, "-9.973130378568733e-246"},
           {0xbf79d4978d73d44a, "-0.006306259157317371"},
           {0xbfe244ecc93be2a8, "-0.5709136896467344"},
           {0xbf3867cb4461d4aa, "-0.0003723975427257312"},
           {0xbea0a82b04e6dca6, "-4.964144951134918e-7"},
           {0x43ff5cbdbb2d8791, "36158235594456633000"},
           {0xc12187af6ba70647, "-574423.710258671"},
           {0xc26b2967a9ca9467, "-933270212180.6376"},
           {0x3ecc881275e1f8a6, "0.0000034012236219119552"},
           {0xc41236c2026a1953, "-83996778051254140000"},
           {0xbedeaac379b97caa, "-0.000007311593346408905"},
           {0xc1c60143f9cc2237, "-738363379.5947942"},
           {0xc4568bfd6b2798cc, "-1.6636628247192053e+21"},
           {0x3fb604189374bc6a, "0.086"},
           {0xc2e128605f52d09d, "-150920905791108.9"},
           {0xc4a356f0efa446d5, "-4.566437222028747e+22"},
           {0x432c5961f7778d54, "3989788323202730"},
           {0xbfee5dc9c9745628, "-0.9489487585694336"},
           {0x4097360000000000, "1485.5"},
           {0xc41903680eed6986, "-115353516108817730000"},
           {0x4430e7d1fb84548c, "311852314218019400000"},
           {0xc43bfd94b556b55e, "-516334518962321500000"},
           {0x3e45035e129137dd, "9.785012427189728e-9"},
           {0x416152db2df8e051, "9082585.4366304"},
           {0x44aaf45132c88699, "6.364419253397112e+22"},
           {0xc08992a9de30af32, "-818.3329433253732"},
           {0x44d2d2c561dc8f76, "3.555625433549582e+23"},
           {0x4424feba18d8f665, "193644946012809360000"},
           {0x4267708ed5dcc873, "805381254886.264"}}) {
    INFO(std::hex << bits);
    CHECK(canonical_json(Json(std::bit_cast<double>(bits))) == text);
  }
}

TEST_CASE("canonical_json writes the examples of RFC 8785") {
  CHECK(canonical(R"({"numbers": [333333333.33333329, 1E30, 4.50, 2e-3,
                                  0.000000000000000000000000001],
                      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
                      "literals": [null, true, false]})") ==
        R"({"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],)"
        R"("string":"€$\u000f\nA'B\"\\\\\"/"})");
  const Json sorted =
      Json::parse(canonical(R"({"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Dalet",
                    "1": "One", "\ud83d\ude00": "Smiley", "\u0080": "Control",
                    "\u00f6": "Umlaut"})"));
  std::vector<std::string> values;
  for (const auto& [key, value] : sorted.items()) values.push_back(value);
  CHECK(values == std::vector<std::string>{"Carriage Return", "One", "Control", "Umlaut",
                                           "Euro Sign", "Smiley", "Dalet"});
}

TEST_CASE("canonical_json escapes control characters, and refuses strings that are not UTF-8") {
  CHECK(canonical(R"("\b\t\n\f\r\"\\\/\u0000\u001F\u007f\u2028é")") ==
        "\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0000\\u001f\x7f\u2028é\"");
  CHECK_THROWS_AS(canonical_json(Json("\xed\xa0\x80")), Error);
  CHECK_THROWS_AS(canonical_json(Json{{"\xff", 1}}), Error);
}

TEST_CASE("canonical_json keeps 64-bit integers exact and equal to the doubles with their value") {
  CHECK(canonical("9007199254740993") == "9007199254740993");
  CHECK(canonical("18446744073709551615") == "18446744073709551615");
  CHECK(canonical("-9223372036854775808") == "-9223372036854775808");
  CHECK(canonical("1.0") == "1");
  CHECK(canonical("-0.0") == "0");
  CHECK(canonical("-0") == "0");
  CHECK(canonical("1152921504606846976") == canonical("1152921504606846976.0"));
  CHECK(canonical("1152921504606847000") != canonical("1152921504606846976.0"));
  CHECK(canonical("18446744073709551616") == "18446744073709552000");
  CHECK(canonical_json(Json(-0x1p63)) == "-9223372036854775808");
}

TEST_CASE("canonical_json sorts keys by UTF-16 code units") {
  const std::vector<std::uint32_t> points = {0x41,    0x7f,    0x80,    0x7ff,    0x800,   0xd7ff,
                                             0xe000,  0xefff,  0xf000,  0xffff,   0x10000, 0x1f600,
                                             0x3ffff, 0x40000, 0xfffff, 0x100000, 0x10ffff};
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::map<std::vector<std::uint16_t>, std::string> expected;
    Json object = Json::object();
    for (int i = 0; i < 12; ++i) {
      std::vector<std::uint32_t> key(random() % 4);
      for (auto& point : key) point = points[random() % points.size()];
      std::string text;
      for (const std::uint32_t point : key) append_utf8(text, point);
      expected[utf16(key)] = text;
      object[text]         = 0;
    }
    std::vector<std::string> keys, got;
    for (const auto& [units, text] : expected) keys.push_back(text);
    const Json reread = Json::parse(canonical_json(object));
    for (const auto& [key, value] : reread.items()) got.push_back(key);
    CHECK(got == keys);
  }
}

namespace {

Json random_value(std::mt19937& random, int depth) {
  const auto below = [&](unsigned n) { return random() % n; };
  switch (below(depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return below(2) == 0;
    case 2:
      return static_cast<std::int64_t>(below(3)) - 1;
    case 3: {
      // Values around 2^53 and 2^63, where integers and doubles differ.
      const std::uint64_t base = std::uint64_t{1} << (53 + 10 * below(2));
      const std::uint64_t near = base + below(5) - 2;
      if (below(2) == 0) return near;
      return static_cast<double>(near);
    }
    case 4: {
      const auto bits  = static_cast<std::uint64_t>(random()) << 32 | random();
      const auto value = std::bit_cast<double>(bits);
      return std::isfinite(value) ? value : 0.5;
    }
    case 5: {
      const char* const texts[] = {"", "a", "\n", "\"", "1", "\u20ac", "\U0001f600"};
      return texts[below(7)];
    }
    case 6: {
      Json array = Json::array();
      for (std::size_t i = below(4); i > 0; --i) array.push_back(random_value(random, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (std::size_t i = below(4); i > 0; --i) {
        object[std::string(1, static_cast<char>('a' + below(5)))] = random_value(random, depth - 1);
      }
      return object;
    }
  }
}

// Reference for equality: exact for numbers, independent of key order.
bool same(const Json& a, const Json& b) {
  const auto exact = [](const Json& value) {
    return value.is_number_float() ? static_cast<long double>(value.get<double>())
           : value.is_number_unsigned()
               ? static_cast<long double>(value.get<std::uint64_t>())
               : static_cast<long double>(value.get<std::int64_t>());  // 64 bits of mantissa
  };
  if (a.is_number() && b.is_number()) return exact(a) == exact(b);
  if (a.type() != b.type()) return false;
  if (a.is_array()) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
  }
  if (!a.is_object()) return a == b;
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key) || !same(value, b[key])) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("canonical_json is equal exactly for equal values and unchanged after reading it back") {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  std::size_t equal = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::pair<Json, std::string>> values;
    for (int i = 0; i < 150; ++i) {
      const Json value       = random_value(random, 2);
      const std::string text = canonical_json(value);
      CHECK(canonical(text) == text);
      CHECK(canonical_json(nlohmann::json(value)) == text);
      values.emplace_back(value, text);
    }
    for (const auto& [a, text_a] : values) {
      for (const auto& [b, text_b] : values) {
        if (same(a, b) != (text_a == text_b)) FAIL(a.dump() << " " << b.dump());
        equal += text_a == text_b ? 1 : 0;
      }
    }
  }
  CHECK(equal > 20 * 150 * 2);
}
