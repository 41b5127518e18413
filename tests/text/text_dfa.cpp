#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>

#include <support/catch.hpp>

namespace {

using tooldecode::text::Occurrences;
using tooldecode::text::TextDfa;

std::vector<std::u32string> texts(std::size_t length) {
  std::vector<std::u32string> all{U""};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() == length) continue;
    for (const char32_t c : {U'a', U'b', U'c'}) all.push_back(all[i] + c);
  }
  return all;
}

std::vector<TextDfa::Row> random_rows(std::mt19937& random) {
  std::vector<TextDfa::Row> rows(1 + random() % 6);
  for (auto& row : rows) {
    row.accepting = random() % 4 == 0;
    for (int c = 0; c < 2; ++c) {
      row.next.push_back(random() % 4 == 0 ? TextDfa::dead
                                           : static_cast<TextDfa::State>(random() % rows.size()));
    }
  }
  return rows;
}

bool runs(const std::vector<TextDfa::Row>& rows, std::u32string_view text) {
  TextDfa::State state = 0;
  for (const char32_t c : text) {
    if (c == U'c') return false;
    state = rows[state].next[c == U'a' ? 0 : 1];
    if (state == TextDfa::dead) return false;
  }
  return rows[state].accepting;
}

}  // namespace

TEST_CASE("TextDfa keeps its language when it is trimmed, minimised and bounded", "[text_dfa]") {
  const auto all = texts(6);
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto rows = random_rows(random);
    const TextDfa dfa({{{'a', 'a'}}, {{'b', 'b'}}}, rows);
    const Occurrences length{
        static_cast<std::uint32_t>(random() % 5),
        random() % 3 ? static_cast<std::uint32_t>(random() % 7) : Occurrences::unbounded};
    const TextDfa bounded = dfa.bounded(length);
    const bool free       = dfa.is_free_of_dead_ends(length);
    INFO("seed " << seed << ", " << length.min << " to " << length.max);
    CHECK(dfa.rows().size() <= rows.size());
    std::size_t wrong = 0;
    for (const auto& text : all) {
      const bool ok   = runs(rows, text);
      const bool fits = text.size() >= length.min && text.size() <= length.max;
      wrong += dfa.accepts(text) != ok;
      wrong += bounded.accepts(text) != (ok && fits);
    }
    CHECK(wrong == 0);
    // All states of a result reach acceptance: a walk that a counter admits and the bounded
    // automaton rejects is a dead end.
    bool has_dead_end = length.min > length.max;
    for (const auto& text : all) {
      if (dfa.empty() || has_dead_end || text.size() > length.max) continue;
      const auto walks = [&](const TextDfa& automaton) {
        TextDfa::State state = 0;
        if (automaton.empty()) return false;
        for (const char32_t c : text) {
          if (c == U'c') return false;
          state = automaton.rows()[state].next[c == U'a' ? 0 : 1];
          if (state == TextDfa::dead) return false;
        }
        return true;
      };
      has_dead_end = walks(dfa) && !walks(bounded);
    }
    if (!dfa.empty() && length != Occurrences{}) CHECK(free == !has_dead_end);
  }
}

TEST_CASE("TextDfa of equal languages has equally many states and bounded throws above its limit",
          "[text_dfa]") {
  const TextDfa one = TextDfa::repeated({{'a', 'z'}});
  const TextDfa twin({{{'a', 'z'}}}, {{{1}, true}, {{2}, true}, {{0}, true}});
  CHECK(twin.rows().size() == one.rows().size());
  CHECK(one.accepts(U"abc"));
  CHECK_FALSE(one.accepts(U"aBc"));
  CHECK(TextDfa({{{'a', 'a'}}}, {{{0}, false}}).empty());
  CHECK(one.is_free_of_dead_ends({3, 100'000}));
  CHECK_THROWS_AS(one.bounded({0, 100'000}), tooldecode::Error);
}

TEST_CASE("TextDfa finds dead ends of long lengths as a search of states and counts does",
          "[text_dfa]") {
  std::size_t free_of_them = 0, with_them = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const TextDfa dfa({{{'a', 'a'}}, {{'b', 'b'}}}, random_rows(random));
    const auto min = static_cast<std::uint32_t>(random() % 30);
    const Occurrences length{min, random() % 3 == 0
                                      ? Occurrences::unbounded
                                      : min + static_cast<std::uint32_t>(random() % 30)};
    if (dfa.empty()) continue;
    // Past the least count and as many states all counts are alike where there is no upper bound.
    const std::size_t states = dfa.rows().size();
    const bool open          = length.max == Occurrences::unbounded;
    const std::size_t last   = open ? min + 2 * states : length.max;
    std::vector<std::vector<char>> ends(last + 1, std::vector<char>(states, 0)), reached = ends;
    reached[0][0] = 1;
    for (std::size_t n = 0; n < last; ++n) {
      for (std::size_t s = 0; s < states; ++s) {
        for (const TextDfa::State t : dfa.rows()[s].next) {
          if (t != TextDfa::dead && reached[n][s]) reached[n + 1][t] = 1;
        }
      }
    }
    for (std::size_t n = last + 1; n-- > 0;) {
      for (std::size_t s = 0; s < states; ++s) {
        ends[n][s] = n >= min && dfa.rows()[s].accepting ? 1 : 0;
        for (const TextDfa::State t : dfa.rows()[s].next) {
          if (t != TextDfa::dead && n < last && ends[n + 1][t]) ends[n][s] = 1;
        }
      }
    }
    bool expected = true;
    for (std::size_t n = 0; n <= (open ? min : last); ++n) {
      for (std::size_t s = 0; s < states; ++s) {
        if (reached[n][s] && !ends[n][s]) expected = false;
      }
    }
    INFO("seed " << seed << ", " << length.min << " to " << length.max);
    CHECK(dfa.is_free_of_dead_ends(length) == expected);
    ++(expected ? free_of_them : with_them);
  }
  CHECK(free_of_them > 20);
  CHECK(with_them > 20);
}

TEST_CASE("TextDfa intersection, union, difference and subset equal those of sets of texts",
          "[text_dfa]") {
  const auto all = texts(5);
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto left = random_rows(random), right = random_rows(random);
    // The right one has other letters: `b` for `a`, and `c` or all others for `b`.
    const TextDfa a({{{'a', 'a'}}, {{'b', 'b'}}}, left);
    const TextDfa b({{{'b', 'b'}},
                     seed % 2 ? ~tooldecode::text::CodePointSet{{'a', 'b'}}
                              : tooldecode::text::CodePointSet{{'c', 'c'}}},
                    right);
    const TextDfa both = intersection(a, b), either = united(a, b), rest = difference(a, b);
    bool is_part      = true;
    std::size_t wrong = 0;
    for (const auto& text : all) {
      const bool in_a = a.accepts(text), in_b = b.accepts(text);
      wrong += both.accepts(text) != (in_a && in_b);
      wrong += either.accepts(text) != (in_a || in_b);
      wrong += rest.accepts(text) != (in_a && !in_b);
      is_part = is_part && (!in_a || in_b);
    }
    INFO("seed " << seed);
    CHECK(wrong == 0);
    CHECK(difference(both, a).empty());
    CHECK(difference(b, either).empty());
    CHECK(difference(rest, a).empty());
    if (!is_part) CHECK_FALSE(rest.empty());
    CHECK(intersection(rest, b).empty());
  }
  const TextDfa any = TextDfa::repeated(tooldecode::text::CodePointSet::all());
  const TextDfa one = TextDfa::of(U"na\u00EFve");
  CHECK(one.accepts(U"na\u00EFve"));
  CHECK_FALSE(one.accepts(U"na\u00EFv"));
  CHECK(TextDfa::of(U"").accepts(U""));
  CHECK_FALSE(difference(any, one).accepts(U"na\u00EFve"));
  CHECK(difference(any, one).accepts(U"naive"));
  CHECK(difference(any, one).accepts(U"na\u00EFve!"));
}

TEST_CASE(
    "intersection of five patterns grows polynomially with their sizes and has a limit of states") {
  // Two count, one searches a part, one an end, and one has many ranges.
  const auto all_of = [](std::size_t n, std::uint64_t& steps) {
    const std::string max = std::to_string(n);
    const tooldecode::BuildBudget budget;
    TextDfa all = TextDfa::repeated(tooldecode::text::CodePointSet::all());
    for (const std::string& pattern :
         {"^[a-m]{1," + max + "}", "[aeiou]{" + std::to_string(n / 10) + "}", "^.{" + max + ",}x",
          std::string("(ab)+$"), "^[\\p{L}]{1," + max + "}"}) {
      all = intersection(all, tooldecode::text::compile_pattern(pattern));
    }
    steps = budget.spent().steps;
    return all.rows().size();
  };
  std::uint64_t steps[3];
  const std::size_t one = all_of(20, steps[0]), two = all_of(40, steps[1]),
                    four = all_of(80, steps[2]);
  CHECK(one > 20);
  CHECK(two < 5 * one);
  CHECK(four < 5 * two);
  CHECK(steps[1] < 6 * steps[0]);
  CHECK(steps[2] < 6 * steps[1]);
  // Coprime counters need as many states as their product.
  TextDfa some   = TextDfa::repeated(tooldecode::text::CodePointSet::all());
  const auto add = [&] {
    for (const char* turn : {"7", "11", "13", "17", "19"}) {
      some = intersection(some,
                          tooldecode::text::compile_pattern("^(.{" + std::string(turn) + "})*$"));
    }
  };
  CHECK_THROWS_AS(add(), tooldecode::Error);
  CHECK(some.rows().size() == 7 * 11 * 13);
}

TEST_CASE("compile_pattern throws for an automaton with too many letters") {
  std::u32string text;
  for (char32_t c = 0; c < 2500; ++c) text.push_back(0x4E00 + c);
  const TextDfa one = TextDfa::of(text);
  CHECK(one.accepts(text));
  std::u32string longer = text;
  for (char32_t c = 2500; c < 4000; ++c) longer.push_back(0x4E00 + c);
  std::string pattern;
  for (const char32_t c : longer) tooldecode::text::append_utf8(pattern, c);
  CHECK_THROWS_AS(tooldecode::text::compile_pattern(pattern), tooldecode::Error);
}

TEST_CASE(
    "TextDfa::counted returns the class and bounds of a repeat and nothing for other automata",
    "[text_dfa]") {
  const tooldecode::text::CodePointSet small{{'a', 'z'}}, some{{'a', 'f'}, {'x', 'z'}};
  for (const Occurrences length :
       {Occurrences{}, Occurrences{1}, Occurrences{0, 1}, Occurrences{3, 3}, Occurrences{2, 9}}) {
    const auto counted = TextDfa::repeated(small).bounded(length).counted();
    REQUIRE(counted);
    CHECK(counted->first == small);
    CHECK(counted->second == length);
    // Two classes with equal transitions.
    const TextDfa two = intersection(TextDfa::repeated(small), TextDfa::repeated(some));
    CHECK(two.bounded(length).counted()->first == some);
  }
  CHECK(TextDfa::of(U"").counted()->second == Occurrences{0, 0});
  CHECK_FALSE(TextDfa::of(U"ab").counted());
  CHECK_FALSE(TextDfa({}, {}).counted());
  CHECK_FALSE(TextDfa({{{'a', 'a'}}}, {{{1}, true}, {{0}, false}}).counted());
  CHECK_FALSE(TextDfa({{{'a', 'a'}}, {{'b', 'b'}}}, {{{1, 1}, true}, {{1, TextDfa::dead}, true}})
                  .counted());
  CHECK_FALSE(united(TextDfa::of(U"a"), TextDfa::of(U"aaa")).counted());
}

TEST_CASE("TextDfa::texts lists every accepted text", "[text_dfa]") {
  CHECK(TextDfa({}, {}).texts().empty());
  const TextDfa letters = TextDfa::repeated({{'a', 'b'}}).bounded({0, 2});
  CHECK(letters.texts() ==
        std::vector<std::u32string>{U"", U"a", U"aa", U"ab", U"b", U"ba", U"bb"});
}

TEST_CASE("TextDfa::has_at_least counts accepted texts and knows loops", "[text_dfa]") {
  CHECK(TextDfa({}, {}).has_at_least(0));
  CHECK_FALSE(TextDfa({}, {}).has_at_least(1));
  CHECK(TextDfa::of(U"ab").has_at_least(1));
  CHECK_FALSE(TextDfa::of(U"ab").has_at_least(2));
  const TextDfa letters = TextDfa::repeated({{'a', 'c'}});
  CHECK(letters.has_at_least(Occurrences::unbounded));
  CHECK(letters.bounded({0, 2}).has_at_least(13));
  CHECK_FALSE(letters.bounded({0, 2}).has_at_least(14));
  CHECK_FALSE(letters.bounded({0, 9}).has_at_least(Occurrences::unbounded));
}
