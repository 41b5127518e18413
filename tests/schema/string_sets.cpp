#include <tooldecode/schema/string_sets.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using namespace tooldecode::text;

TEST_CASE("StringSets::holds and texts agree on combined tests") {
  StringSets sets;
  const auto a = sets.pattern("^a", "#/a"), b = sets.pattern("b$", "#/b");
  CHECK(sets.pattern("^a", "#/c") == a);
  const StringTests both{{a, false}, {b, false}}, only{{a, false}, {b, true}};
  for (const auto& [text, in_both, in_only] : {std::tuple{"ab", true, false},
                                               {"a", false, true},
                                               {"b", false, false},
                                               {"acb", true, false}}) {
    INFO(text);
    CHECK(sets.holds(both, text) == in_both);
    CHECK(sets.holds(only, text) == in_only);
    CHECK(sets.texts(both).accepts(decode_utf8(text)) == in_both);
    CHECK(sets.texts(only).accepts(decode_utf8(text)) == in_only);
  }
  CHECK(sets.texts({}).accepts(U""));
  CHECK_FALSE(sets.excludes_all(both));
  CHECK(sets.excludes_all({{a, false}, {a, true}}));
  CHECK(sets.excludes_all({{a, false}, {sets.pattern("^b", "#/d"), false}}));
}

TEST_CASE("StringSets compiles each pattern once and charges the BuildBudget for tests of texts") {
  StringSets sets;
  const auto a = sets.pattern("^\\p{L}{1,300}$", "#/a");
  const BuildBudget budget;
  const TextDfa& alone   = sets.texts({{a, false}});
  const BuildLimits once = budget.spent();
  CHECK(&sets.texts({{a, false}}) == &alone);
  CHECK(sets.pattern("^\\p{L}{1,300}$", "#/b") == a);
  CHECK(budget.spent() == once);
  CHECK(sets.holds({{a, false}}, "abc"));
  CHECK(budget.spent().steps > once.steps);
}

TEST_CASE("StringSets names the place of a pattern that exceeds the limit") {
  StringSets sets;
  const BuildBudget budget({.steps = 2'000'000});
  try {
    for (int i = 0; i < 1000; ++i) {
      const auto one =
          sets.pattern("^(a|b){0,1000}c" + std::to_string(i), "#/" + std::to_string(i));
      (void)sets.texts({{one, false}});
    }
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::limit_exceeded);
    CHECK(error.where().rfind("#/", 0) == 0);
  }
}

TEST_CASE("StringSets names the first place of a malformed pattern") {
  StringSets sets;
  const auto bad = sets.pattern("(", "#/pattern");
  try {
    (void)sets.texts({{bad, false}});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.where() == "#/pattern");
    CHECK(error.code() == Errc::malformed_pattern);
  }
}

TEST_CASE("StringSets concludes nothing from texts that a partial format lacks") {
  StringSets sets;
  const auto format = sets.format("regex", "#/format");
  const auto look   = sets.pattern("^\\(\\?<", "#/pattern");
  const StringTests is{{*format, false}}, is_not{{*format, true}};
  CHECK(sets.has_partial(is));
  CHECK(sets.holds(is, "a+"));
  CHECK_FALSE(sets.holds(is_not, "a+"));
  const auto refuses = [](const auto& conclude) {
    try {
      conclude();
      return false;
    } catch (const Error& error) {
      return error.code() == Errc::unsupported_keyword;
    }
  };
  CHECK(refuses([&] { (void)sets.holds(is, "(?<=a)b"); }));
  CHECK(refuses([&] { (void)sets.holds(is_not, "(?<=a)b"); }));
  CHECK(refuses([&] { (void)sets.texts(is_not); }));
  // Look-behind begins some regular expressions, and none of the automaton.
  CHECK_FALSE(sets.excludes_all(united(is, {{look, false}})));
  CHECK(sets.texts(united(is, {{look, false}})).empty());
  CHECK(sets.has_partial({{sets.add(nullptr, is), false}}));
}
