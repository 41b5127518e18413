#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/pattern.hpp>

#include <support/catch.hpp>

using tooldecode::CodePointSet;
using tooldecode::Occurrences;
using tooldecode::Pattern;

namespace {

// The set of a pattern that is one atom.
CodePointSet set_of(std::string_view text) {
  const Pattern pattern(text);
  REQUIRE(pattern[pattern.root()].kind == Pattern::Kind::set);
  return pattern[pattern.root()].set;
}

std::string place_of(std::string_view text) {
  try {
    const Pattern pattern(text);
  } catch (const tooldecode::Error& error) {
    return std::string(error.where());
  }
  return "none";
}

}  // namespace

TEST_CASE("A pattern is a tree of what it says") {
  const Pattern pattern("^(?:ab|[c-e]{2,})*?(?!x\\b)$");
  const Pattern::Node& all = pattern[pattern.root()];
  REQUIRE(all.kind == Pattern::Kind::sequence);
  REQUIRE(all.children.size() == 4);
  CHECK(pattern[all.children[0]].kind == Pattern::Kind::begin);
  const Pattern::Node& star = pattern[all.children[1]];
  REQUIRE(star.kind == Pattern::Kind::repeat);
  CHECK(star.count == Occurrences{});
  CHECK(star.can_empty);
  const Pattern::Node& choice = pattern[star.children[0]];
  REQUIRE(choice.kind == Pattern::Kind::choice);
  CHECK_FALSE(choice.can_empty);
  CHECK(pattern[choice.children[1]].count == Occurrences{2, Occurrences::unbounded});
  const Pattern::Node& look = pattern[all.children[2]];
  CHECK(look.kind == Pattern::Kind::lookahead);
  CHECK(look.negated);
  CHECK(all.has_look);
  CHECK_FALSE(star.has_look);
  CHECK(pattern[all.children[3]].kind == Pattern::Kind::end);
}

TEST_CASE("Classes in every form") {
  CHECK(set_of("[a-cx\\d_-]") ==
        CodePointSet{{'a', 'c'}, {'x', 'x'}, {'0', '9'}, {'_', '_'}, {'-', '-'}});
  CHECK(set_of("[\\w-.]") == (Pattern::word() | CodePointSet{{'-', '.'}}));
  CHECK(set_of("[a-\\d]") == CodePointSet{{'a', 'a'}, {'-', '-'}, {'0', '9'}});
  CHECK(set_of("[^\\S]") == set_of("\\s"));
  CHECK(set_of("[\\u{1F600}-\\uD83D\\uDE0F]") == CodePointSet{{0x1F600, 0x1F60F}});
  CHECK(set_of("[\\cA-\\x1f\\b]") == CodePointSet{{1, 0x1F}});
  CHECK(set_of("\\p{Zs}") == (set_of("\\s") & set_of("[\\p{Zs}]")));
  CHECK(set_of("\\P{L}") == ~set_of("\\p{Letter}"));
  CHECK(set_of("[^\\p{sc=Greek}]") == set_of("\\P{Script=Greek}"));
  CHECK(set_of("[]").empty());
  CHECK(set_of("[^]") == CodePointSet::all());
  CHECK(set_of("]") == CodePointSet{{']', ']'}});
  CHECK(set_of("\\uD800").empty());
}

TEST_CASE("Errors name the character") {
  CHECK(place_of("ab[z-a]") == "character 6");
  CHECK(place_of("a)b") == "character 1");
  CHECK(place_of("(?<=a)") == "character 3");
  CHECK(place_of("a{,3}") == "character 2");
  CHECK(place_of("a{x") == "none");
  CHECK(place_of("^*") == "character 2");
  CHECK(place_of("(?=a)+") == "character 6");
  CHECK(place_of("(^)+") == "none");
  CHECK(place_of("\\uD83D\\u0041") == "character 12");
  CHECK(place_of("\\p{Klingon}") == "character 10");
  CHECK(place_of(std::string(60'000, 'a')) == "");
}
