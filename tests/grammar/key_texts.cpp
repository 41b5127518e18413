#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/key_texts.hpp>

#include <support/catch.hpp>

using tooldecode::grammar::KeyTexts;

TEST_CASE("KeyTexts numbers texts as a comparison of strings does") {
  std::mt19937 random(7);
  KeyTexts texts;
  std::vector<std::pair<std::string, KeyTexts::Number>> all{{"", KeyTexts::empty}};
  for (int i = 0; i < 400; ++i) {
    const auto& [text, number] = all[random() % all.size()];
    const std::string more(1 + random() % 5, static_cast<char>("ab\xFF"[random() % 3]));
    all.emplace_back(text + more, texts.with(number, more));
    CHECK(all.back().second == texts.with(KeyTexts::empty, all.back().first));
  }
  for (const auto& [text, number] : all) {
    REQUIRE(texts.length(number) == text.size());
    REQUIRE(texts.bytes_behind(number, 0) == text);
    const std::size_t place = random() % (text.size() + 1);
    REQUIRE(texts.bytes_behind(number, place, 3) == text.substr(place, 3));
    REQUIRE(texts.bytes_behind(number, text.size() + 1).empty());
    const KeyTexts::Number first = texts.beginning(number, place);
    REQUIRE(texts.bytes_behind(first, 0) == text.substr(0, place));
    REQUIRE(first <= number);
    for (const auto& [other, at] : all) {
      const bool goes_on = text.size() > other.size() && text.starts_with(other);
      REQUIRE((text == other) == (number == at));
      REQUIRE(texts.goes_on_from(number, at) == goes_on);
      REQUIRE(texts.goes_on_from(number, other) == goes_on);
      REQUIRE((!goes_on || at < number));
    }
  }
  KeyTexts others;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    const KeyTexts::Number number = others.adopt(texts, one->second);
    REQUIRE(others.bytes_behind(number, 0) == one->first);
    REQUIRE(others.adopt(texts, one->second) == number);
  }
}

TEST_CASE("KeyTexts finds a beginning of a long text in few steps") {
  KeyTexts texts;
  std::vector<KeyTexts::Number> at{KeyTexts::empty};
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    at.push_back(texts.with(at.back(), static_cast<std::uint8_t>(i)));
  }
  CHECK(texts.bytes() < 100 * at.size());
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t a = random() % at.size(), b = random() % at.size();
    const tooldecode::BuildBudget budget;
    REQUIRE(texts.beginning(at[std::max(a, b)], std::min(a, b)) == at[std::min(a, b)]);
    REQUIRE(budget.spent().steps < 60);
  }
}
