#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/text/dfa_units.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

// Two of the letters begin with the same byte.
TextDfa random_text(std::mt19937& random) {
  std::vector<TextDfa::Row> rows(1 + random() % 6);
  for (TextDfa::Row& row : rows) {
    row.accepting = random() % 4 == 0;
    for (int c = 0; c < 4; ++c) {
      row.next.push_back(random() % 2 == 0 ? TextDfa::dead
                                           : static_cast<TextDfa::State>(random() % rows.size()));
    }
  }
  return {{{{'a', 'a'}}, {{0xE8, 0xE8}}, {{0xE9, 0xE9}}, {{0x65E5, 0x65E5}}}, rows};
}

// The numbers of units up to `most` that lead to acceptance, by following every byte.
std::set<std::uint32_t> slow_units(const Dfa& dfa, Dfa::State from, std::uint32_t most) {
  std::set<std::uint32_t> found;
  std::set<std::pair<Dfa::State, std::uint32_t>> seen{{from, 0}};
  std::vector<std::pair<Dfa::State, std::uint32_t>> work{{from, 0}};
  while (!work.empty()) {
    const auto [state, units] = work.back();
    work.pop_back();
    if (dfa.accepting(state)) found.insert(units);
    for (unsigned b = 0; b < 256; ++b) {
      const Dfa::State next = dfa.next(state, static_cast<std::uint8_t>(b));
      if (next == Dfa::dead) continue;
      const std::pair after{next, units + (dfa.boundary(state) && !dfa.closing(next) ? 1 : 0)};
      if (after.second <= most && seen.insert(after).second) work.push_back(after);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("DfaUnits of random automata equals what following every byte finds") {
  constexpr std::uint32_t most = 24;
  std::size_t known = 0, unknown = 0, split = 0, unbounded = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const TextDfa text = random_text(random);
    const Dfa dfa      = seed % 2 ? string_lexeme(text, ValueSyntax::json, '"') : utf8_lexeme(text);
    const DfaUnits units(dfa);
    ++(units.is_known() ? known : unknown);
    if (!units.is_known()) continue;
    bool is_open         = true;
    std::uint32_t fewest = 0;
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      const std::set<std::uint32_t> expected = slow_units(dfa, state, most);
      std::set<std::uint32_t> found;
      std::uint64_t from = 0;
      for (const auto& [min, max] : units[state]) {
        REQUIRE(min >= from);
        REQUIRE(min <= max);
        from = std::uint64_t{max} + 2;
        for (std::uint32_t n = min; n <= std::min(max, most); ++n) found.insert(n);
        REQUIRE(units.far() >= (max == Occurrences::unbounded ? min : max));
      }
      REQUIRE(found == expected);
      split += units[state].size() > 1;
      const bool has_most = units[state].back().max != Occurrences::unbounded;
      unbounded += !has_most;
      is_open = is_open && (!has_most || dfa.live(state).empty());
      fewest  = std::max(fewest, units[state].front().min);
      for (int i = 0; i < 8; ++i) {
        const auto count = static_cast<std::uint32_t>(random() % 9);
        Occurrences bounds{static_cast<std::uint32_t>(random() % 9), Occurrences::unbounded};
        if (random() % 2) bounds.max = bounds.min + static_cast<std::uint32_t>(random() % 4);
        const bool reaches = std::any_of(expected.begin(), expected.end(), [&](std::uint32_t n) {
          return count + n >= bounds.min && count + n <= bounds.max;
        });
        REQUIRE(units.is_within_reach(state, count, bounds) == reaches);
      }
    }
    CHECK(units.is_open() == (is_open || dfa.empty()));
    CHECK(units.fewest() == fewest);
  }
  INFO(known << " known, " << unknown << " unknown, " << split << " states with gaps");
  CHECK(known > 300);
  CHECK(unknown > 5);
  CHECK(split > 100);
  CHECK(unbounded > 500);
}

TEST_CASE("DfaUnits knows the ranges of patterns with gaps, loops and letters of any script") {
  const auto units_of = [](const char* pattern) {
    return DfaUnits(string_lexeme(compile_pattern(pattern), ValueSyntax::json, '"'));
  };
  const auto at_start = [&](const char* pattern) {
    const DfaUnits units = units_of(pattern);
    return std::vector<Occurrences>(units[0].begin(), units[0].end());
  };
  constexpr std::uint32_t open = Occurrences::unbounded;
  CHECK(at_start("^(?:\\S+\\s+){0,49}\\S+$") == std::vector<Occurrences>{{1, open}});
  CHECK(at_start("^(aé|日本語)*$") == std::vector<Occurrences>{{0, 0}, {2, open}});
  CHECK(at_start("^(a{2}|\\p{L}{5,7})$") == std::vector<Occurrences>{{2, 2}, {5, 7}});
  CHECK(at_start("^\\p{L}{1,40}$") == std::vector<Occurrences>{{1, 40}});
  CHECK_FALSE(units_of("^(ab)*$").is_known());
  CHECK(units_of("^(ab)*$").bytes() > 0);
}
