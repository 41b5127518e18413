#include <cctype>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/text/code_points.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using tooldecode::text::CodePointSet;
using tooldecode::text::hex_digit;

TEST_CASE("hex_digit reads the digits that std::stoi reads, and no other character") {
  for (int c = 0; c < 0x200; ++c) {
    INFO(c);
    const bool is_digit = c < 0x80 && std::isxdigit(c) != 0;
    const auto digit    = hex_digit(static_cast<char32_t>(c));
    REQUIRE(digit.has_value() == is_digit);
    if (!digit) continue;
    CHECK(static_cast<int>(*digit) == std::stoi(std::string(1, static_cast<char>(c)), nullptr, 16));
  }
  CHECK_FALSE(hex_digit('\xB1'));
}

TEST_CASE("CodePointSet operations equal those of a std::set without surrogates", "[code_points]") {
  // Near the ends of the surrogates and of Unicode, where ranges are cut.
  const char32_t bases[] = {0, 0xD7F8, 0xDFF8, 0x10FFF0};
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const char32_t base = bases[random() % 4];
    const auto make     = [&](std::set<char32_t>& model) {
      std::vector<CodePointSet::Range> ranges;
      for (auto i = random() % 4; i > 0; --i) {
        const char32_t first = base + static_cast<char32_t>(random() % 16);
        const char32_t last  = first + static_cast<char32_t>(random() % 6);
        ranges.emplace_back(first, last);
        for (char32_t c = first; c <= last; ++c) {
          if (c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF)) model.insert(c);
        }
      }
      return CodePointSet(ranges);
    };
    std::set<char32_t> in_a, in_b;
    const CodePointSet a = make(in_a), b = make(in_b);
    INFO("seed " << seed);
    for (char32_t c = base; c < base + 24; ++c) {
      const bool text = c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
      CHECK(a.contains(c) == (in_a.count(c) != 0));
      CHECK((a | b).contains(c) == (in_a.count(c) + in_b.count(c) != 0));
      CHECK((a & b).contains(c) == (in_a.count(c) * in_b.count(c) != 0));
      CHECK((~a).contains(c) == (text && in_a.count(c) == 0));
    }
    CHECK(~~a == a);
    CHECK((a | ~a) == CodePointSet::all());
    CHECK((a & ~a).empty());
  }
  CHECK(~CodePointSet::all() == CodePointSet{});
  CHECK(~CodePointSet{} == CodePointSet::all());
}

TEST_CASE(
    "append_utf8 and decode_utf8 are inverses and agree with a JSON parser on short byte strings",
    "[code_points]") {
  std::size_t wrong = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string bytes;
    tooldecode::text::append_utf8(bytes, c);
    wrong += tooldecode::text::decode_utf8(bytes) != std::u32string(1, c);
  }
  CHECK(wrong == 0);
  std::mt19937 random(3);
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes;
    for (auto k = 1 + random() % 4; k > 0; --k) {
      bytes += static_cast<char>((k == 1 ? 0x80 : 0x20) + random() % 0xE0);
    }
    if (bytes.find_first_of("\"\\\x7F") != std::string::npos) continue;
    bool control = false;
    for (const char c : bytes) control = control || static_cast<unsigned char>(c) < 0x20;
    if (control) continue;
    const bool valid = nlohmann::json::accept('"' + bytes + '"');
    wrong += valid == (tooldecode::text::decode_utf8(bytes).find(0xFFFD) != std::u32string::npos) &&
             bytes.find("\xEF\xBF\xBD") == std::string::npos;
  }
  CHECK(wrong == 0);
}
