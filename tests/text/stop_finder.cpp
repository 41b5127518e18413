#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/stop_finder.hpp>

#include <support/catch.hpp>

using tooldecode::text::StopFinder;

TEST_CASE("StopFinder releases text up to the first stop and holds back what may begin one") {
  StopFinder stops({"<end>", "\n\n"});
  CHECK(stops.push("a <e") == "a ");
  CHECK(stops.push("n") == "");
  CHECK(stops.push("t>") == "<ent>");
  CHECK(stops.push("\n") == "");
  CHECK_FALSE(stops.found());
  CHECK(stops.push("\nb") == "");
  REQUIRE(stops.found());
  CHECK(*stops.found() == "\n\n");
  CHECK(stops.push("more") == "");
  CHECK(stops.finish() == "");
  StopFinder other({"ab"});
  CHECK(other.push("xa") == "x");
  CHECK(other.finish() == "a");
  CHECK(StopFinder().push("all") == "all");
}

TEST_CASE(
    "StopFinder ends random texts at the stop that is complete first, however the text is cut") {
  const std::uint32_t seed = 20261123;
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto letters = [&](std::size_t max) {
    std::string text;
    for (std::size_t n = 1 + random() % max; n > 0; --n)
      text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t n = random() % 3; n > 0; --n) stops.push_back(letters(4));
    const std::string text = letters(20);
    // Brute force: the shortest prefix that ends with a stop, without the longest such stop.
    std::string expected = text, found;
    for (std::size_t end = 1; end <= text.size() && expected == text; ++end) {
      std::size_t longest = 0;
      for (const std::string& stop : stops) {
        if (std::string_view(text).substr(0, end).ends_with(stop))
          longest = std::max(longest, stop.size());
      }
      if (longest > 0) {
        expected = text.substr(0, end - longest);
        found    = text.substr(end - longest, longest);
        break;
      }
    }
    StopFinder finder(stops);
    std::string shown;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t size = 1 + random() % 5;
      shown += finder.push(text.substr(i, size));
      i += size;
    }
    shown += finder.finish();
    if (shown != expected) FAIL("round " << round << ": " << text);
    const std::string which = finder.found() ? *finder.found() : "";
    if (which != found) FAIL("round " << round << ": " << text);
  }
}
