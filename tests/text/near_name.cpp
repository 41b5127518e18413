#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/near_name.hpp>

#include <support/catch.hpp>

using namespace tooldecode::text;

namespace {

std::size_t by_recursion(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::size_t changed = a[0] == b[0] ? 0 : 1;
  std::size_t least = std::min({by_recursion(a.substr(1), b) + 1, by_recursion(a, b.substr(1)) + 1,
                                by_recursion(a.substr(1), b.substr(1)) + changed});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    least = std::min(least, by_recursion(a.substr(2), b.substr(2)) + 1);
  }
  return least;
}

std::string word(std::mt19937& random, std::size_t max) {
  std::string letters;
  for (std::size_t i = random() % (max + 1); i > 0; --i) letters += "abc"[random() % 3];
  return letters;
}

}  // namespace

TEST_CASE("edit_distance is the least number of edits and swaps") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::string a = word(random, 6), b = word(random, 6);
    INFO("seed " << seed << ": " << a << ' ' << b);
    REQUIRE(edit_distance(a, b) == by_recursion(a, b));
  }
  CHECK(edit_distance("minLenght", "minLength") == 1);
  CHECK(edit_distance("MINLENGTH", "minLength") == 0);
}

TEST_CASE("find_near_name returns the first of the nearest names within the edits") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::string name = word(random, 6);
    const std::vector<std::string> words{word(random, 6), word(random, 6), word(random, 6)};
    const std::vector<std::string_view> names(words.begin(), words.end());
    const std::size_t max_edits = random() % 4;
    INFO("seed " << seed << ": " << name << " of " << words[0] << ' ' << words[1] << ' ' << words[2]
                 << ", " << max_edits);
    std::string_view expected;
    std::size_t least = max_edits + 1;
    for (const std::string_view known : names) {
      const std::size_t apart = by_recursion(name, known);
      if (apart < least && apart < known.size()) expected = known, least = apart;
    }
    const auto found = find_near_name(name, names, max_edits);
    REQUIRE(found.has_value() == (least <= max_edits));
    if (found) REQUIRE(found->data() == expected.data());
  }
  const std::string_view names[] = {"name"};
  CHECK_FALSE(find_near_name(std::string(1000, 'n'), names, 2000));
}
