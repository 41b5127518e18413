#include <algorithm>
#include <string>

#include <tooldecode/vocabulary/byte_alphabet.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("find_alphabet_bytes decodes the byte alphabet of GPT-2") {
  // The first and last letters of each run, from the table that GPT-2 publishes.
  CHECK(td::vocabulary::find_alphabet_bytes("!~") == "!~");
  CHECK(td::vocabulary::find_alphabet_bytes("\u00A1\u00AC\u00AE\u00FF") == "\xA1\xAC\xAE\xFF");
  CHECK(td::vocabulary::find_alphabet_bytes("\u0100\u0120\u0121\u0142\u0143") ==
        std::string("\0 \x7F\xA0\xAD", 5));
  CHECK(td::vocabulary::find_alphabet_bytes("\u010A\u0109") == "\n\t");
  CHECK(td::vocabulary::find_alphabet_bytes("") == "");
}

TEST_CASE("find_alphabet_bytes has exactly one letter for each byte") {
  std::string all;
  for (char32_t letter = 0; letter < 0x200; ++letter) {
    std::string text;
    if (letter < 0x80) {
      text = static_cast<char>(letter);
    } else {
      text = {static_cast<char>(0xC0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3F))};
    }
    if (const auto bytes = td::vocabulary::find_alphabet_bytes(text)) all += *bytes;
  }
  std::sort(all.begin(), all.end(), [](char a, char b) {
    return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
  });
  REQUIRE(all.size() == 256);
  for (std::size_t byte = 0; byte < 256; ++byte) CHECK(all[byte] == static_cast<char>(byte));
}

TEST_CASE("find_alphabet_bytes returns nothing for text outside the alphabet") {
  CHECK_FALSE(td::vocabulary::find_alphabet_bytes("a b"));
  CHECK_FALSE(td::vocabulary::find_alphabet_bytes("\u00AD"));
  CHECK_FALSE(td::vocabulary::find_alphabet_bytes("\u0144"));
  CHECK_FALSE(td::vocabulary::find_alphabet_bytes("\u2581"));
  CHECK_FALSE(td::vocabulary::find_alphabet_bytes("\xC4"));
}

TEST_CASE("replace_space_marks replaces the marks of SentencePiece by spaces") {
  CHECK(td::vocabulary::replace_space_marks("\u2581a\u2581\u2581b") == " a  b");
  CHECK(td::vocabulary::replace_space_marks("\xE2\x96") == "\xE2\x96");
}
