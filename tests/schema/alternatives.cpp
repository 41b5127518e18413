#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/schema/alternatives.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using namespace tooldecode::text;

namespace {

NumberForm numbers(const char* min, const char* max, NumberKinds kinds = NumberKinds::any) {
  NumberForm form{.kinds = kinds};
  if (*min != 0) form.bounds.minimum = {Decimal::parse(min), false};
  if (*max != 0) form.bounds.maximum = {Decimal::parse(max), false};
  return form;
}

}  // namespace

TEST_CASE("NumberForm intersection and difference compute bounds, kinds and multiples") {
  CHECK_FALSE(intersection(numbers("3", ""), numbers("", "2")));
  CHECK(find_point(*intersection(numbers("2", ""), numbers("", "2"))) != nullptr);
  CHECK_FALSE(intersection(numbers("2.5", "2.5"), numbers("", "", NumberKinds::integers)));
  NumberForm even;
  even.bounds.multiples = {Decimal::parse("2")};
  CHECK_FALSE(intersection(numbers("3", "3"), even));
  CHECK(intersection(numbers("4", "4"), even));
  const auto outside = difference({}, numbers("1", "2"));
  REQUIRE(outside.size() == 2);
  CHECK(outside[0].bounds.maximum->exclusive);
  CHECK(outside[1].bounds.minimum->value == Decimal::parse("2"));
  CHECK_THROWS_AS(difference({}, even), Error);
  CHECK(difference(even, even).empty());
}

TEST_CASE("NumberForm intersection of kinds distinguishes value and spelling") {
  using enum NumberKinds;
  const auto kinds_of = [](const NumberForm& a, const NumberForm& b) {
    const auto both = intersection(a, b);
    return both ? both->kinds : none;
  };
  CHECK(kinds_of({}, numbers("", "", integers)) == integers);
  CHECK(kinds_of(numbers("", "", integers), numbers("", "", fractions)) == none);
  CHECK(kinds_of(numbers("2", "2"), numbers("", "", fractions)) == none);
  // A single number that its kind does not restrict has all kinds.
  CHECK(kinds_of(numbers("2", "2"), numbers("", "", integers)) == any);
  CHECK(kinds_of(numbers("2.5", "2.5"), numbers("", "", fractions)) == any);
  CHECK(kinds_of(numbers("2", "2"), numbers("", "", digits)) == digits);
  const auto others = difference({}, numbers("", "", digits));
  REQUIRE(others.size() == 1);
  CHECK(others[0].kinds == ~digits);
}

TEST_CASE("StringForm intersection and difference filter lists and find contradictory tests") {
  StringSets sets;
  const StringForm list{.values = std::vector<std::string>{"a", "bb", "\xC3\xA9\xC3\xA9"}};
  CHECK(intersection(list, {.length = {2, 2}}, sets)->values ==
        std::vector<std::string>{"bb", "\xC3\xA9\xC3\xA9"});
  CHECK_FALSE(intersection(list, {.length = {3}}, sets));
  const auto b = sets.pattern("b", "#");
  CHECK(intersection(list, {.tests = {{b, false}}}, sets)->values ==
        std::vector<std::string>{"bb"});
  CHECK_FALSE(intersection({.tests = {{b, false}}}, {.tests = {{b, true}}}, sets));
  const auto rest = difference(list, {.values = std::vector<std::string>{"a"}}, sets);
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].values->size() == 2);
  CHECK(texts_of({"ab", "a", ""}).accepts(U"ab"));
  CHECK_FALSE(texts_of({"ab", "a"}).accepts(U""));
}

TEST_CASE("texts_of accepts exactly the texts of a list, in any order and repeated") {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    std::vector<std::string> list(random() % 12);
    for (std::string& text : list) {
      for (auto n = random() % 4; n > 0; --n) text += "abc"[random() % 3];
    }
    const text::TextDfa dfa = texts_of(list);
    std::vector<std::string> all{""};
    for (std::size_t k = 0; k < all.size() && all[k].size() < 4; ++k) {
      for (const char c : {'a', 'b', 'c'}) all.push_back(all[k] + c);
    }
    for (const std::string& text : all) {
      const bool is_listed = std::ranges::find(list, text) != list.end();
      REQUIRE(dfa.accepts(text::decode_utf8(text)) == is_listed);
    }
  }
}

TEST_CASE("texts_of needs no more than states x classes of texts with many characters") {
  const auto letter = [](char32_t c) {
    std::string text;
    text::append_utf8(text, c);
    return text;
  };
  std::vector<std::string> letters, tails, pairs;
  for (char32_t c = 0x4E00; c < 0x4E00 + 10'000; ++c) {
    letters.push_back(letter(c));
    tails.push_back("tool-" + letter(c) + "-end");
    pairs.push_back(letter(c) + letter(c + 10'000));
  }
  const text::TextDfa one = texts_of(letters);
  CHECK(one.rows().size() == 2);
  CHECK(one.classes().size() == 1);
  CHECK(one.accepts(U"\u4E05"));
  CHECK(texts_of(tails).rows().size() == 11);
  try {
    static_cast<void>(texts_of(pairs));
    FAIL("10,000 states x 20,000 classes");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::limit_exceeded);
  }
}

TEST_CASE("settle bounds arrays and objects by their impossible items and members") {
  ArrayForm array{.prefix = {any_form, nothing_form}, .length = {1}};
  CHECK(settle(array));
  CHECK(array.length.max == 1);
  array.length.min = 2;
  CHECK_FALSE(settle(array));
  ObjectForm object{.members = {{"a", nothing_form, true}}};
  CHECK_FALSE(settle(object));
  ObjectForm small{.members = {{"a"}, {"b", nothing_form}}, .others = {}, .count = {2}};
  CHECK_FALSE(settle(small));
}
