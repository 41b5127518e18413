#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include <tooldecode/core/line_place.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("LinePlace::of counts lines and characters as a cursor does") {
  const std::string characters[] = {"a", "\n", "\xC3\xA9", "\xE6\x97\xA5"};
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    std::size_t line = 1, column = 1, begin = 0;
    for (std::size_t i = random() % 40; i > 0; --i) {
      const std::string character = characters[random() % 4];
      text += character;
      column = character == "\n" ? 1 : column + 1;
      line += character == "\n" ? 1 : 0;
      if (character == "\n") begin = text.size();
    }
    INFO("seed " << seed << ": " << text);
    const LinePlace place = LinePlace::of(text, text.size());
    REQUIRE(place.line == line);
    REQUIRE(place.column == column);
    REQUIRE(place.begin == begin);
  }
}
