#include <cstdint>

#include <tooldecode/ebnf/regular_parts.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;
using namespace tooldecode::text;
using test::accepts;

TEST_CASE("RegularParts::find_lexeme compiles a part without recursion to one lexeme") {
  Rules g;
  const auto digit  = g.characters({{'0', '9'}});
  const auto number = g.reserve();
  const auto e      = g.choice({g.text("e\u00E9"), g.text("")});
  g.define(number, g.sequence({g.repeat(g.text("-"), {0, 1}), g.repeat(digit, {1}), e}));
  RegularParts regular(g);
  const DfaPointer dfa = regular.find_lexeme(number);
  REQUIRE(dfa);
  for (const char* text : {"0", "-12", "3e\u00E9"}) CHECK(accepts(*dfa, text));
  for (const char* text : {"", "-", "3e", "3e\u00E9\u00E9"}) CHECK_FALSE(accepts(*dfa, text));
  CHECK(regular.find_lexeme(number) == dfa);
}

TEST_CASE("RegularParts::find_lexeme returns nothing for recursion, plain texts and long counts") {
  Rules g;
  const auto any   = g.characters(CodePointSet::all());
  const auto list  = g.reserve();
  const auto items = g.sequence({any, list});
  g.define(list, g.choice({items, g.text("")}));
  const auto unused  = g.reserve();
  const auto words   = g.choice({g.text("a"), g.text("b")});
  const auto counted = g.repeat(any, {2, 1'000'000'000});
  const auto copied  = g.repeat(g.sequence({any, words}), {1'000'000'000});
  const auto none    = g.repeat(any, {0, 0});
  RegularParts regular(g);
  for (const auto id : {list, items, unused, words, counted, copied}) {
    CHECK(regular.find_lexeme(id) == nullptr);
  }
  CHECK(regular.is_counted(counted));
  CHECK_FALSE(regular.is_counted(copied));
  CHECK(accepts(*regular.find_lexeme(none), ""));
  CHECK_FALSE(accepts(*regular.find_lexeme(none), "a"));
  CHECK(accepts(*regular.run_of({{'a', 'b'}}), "abba"));
  CHECK(accepts(*regular.one_of({{'a', 'b'}}), "a"));
  CHECK_FALSE(accepts(*regular.one_of({{'a', 'b'}}), "ab"));
}

TEST_CASE("RegularParts::find_lexeme gives up after a few parts with too many states") {
  Rules g;
  const auto either = g.characters({{'a', 'b'}});
  const auto bad    = [&](std::uint32_t n) {  // an 'a' at a fixed distance from the end
    return g.sequence(
        {g.repeat(either, {}), g.text("a"), g.repeat(g.sequence({either, either}), {n, n})});
  };
  const auto first = bad(30), second = bad(31), third = bad(32), good = g.repeat(either, {1});
  RegularParts regular(g);
  CHECK(regular.find_lexeme(first) == nullptr);
  CHECK(regular.find_lexeme(second) == nullptr);
  CHECK(regular.find_lexeme(third) == nullptr);
  CHECK(regular.find_lexeme(good) == nullptr);
  CHECK(RegularParts(g).find_lexeme(good) != nullptr);
}

TEST_CASE("RegularParts::find_lexeme returns one lexeme for equal parts") {
  Rules g;
  const auto word = [&](std::uint32_t max) {
    return g.sequence({g.text("x"), g.repeat(g.characters({{'a', 'z'}}), {1, max})});
  };
  const auto one = word(5), same = word(5), other = word(6);
  RegularParts regular(g);
  CHECK(regular.find_lexeme(one) != nullptr);
  CHECK(regular.find_lexeme(one) == regular.find_lexeme(same));
  CHECK(regular.find_lexeme(one) != regular.find_lexeme(other));
}
