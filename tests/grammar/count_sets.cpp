#include <cstdint>
#include <random>
#include <set>

#include <tooldecode/grammar/count_sets.hpp>

#include <support/catch.hpp>

using tooldecode::grammar::CountSets;
using tooldecode::text::Occurrences;

namespace {

constexpr std::uint32_t max = 40;

// The numbers of further items after which the repetition may end, from any of some counts.
std::set<std::uint32_t> ends(const std::set<std::uint32_t>& counts, const Occurrences& bounds) {
  std::set<std::uint32_t> result;
  for (const std::uint32_t count : counts) {
    for (std::uint32_t more = 0; more <= max; ++more) {
      if (count + more >= bounds.min && count + more <= bounds.max) result.insert(more);
    }
  }
  return result;
}
std::set<std::uint32_t> ends(CountSets& sets, CountSets::Counts counts, const Occurrences& bounds) {
  std::set<std::uint32_t> result;
  for (std::uint32_t more = 0; more <= max; ++more) {
    if (sets.may_end(counts, bounds)) result.insert(more);
    if (!sets.may_go_on(counts, bounds)) break;
    counts = sets.next(counts, bounds);
  }
  return result;
}

}  // namespace

TEST_CASE("CountSets ends and continues as the single counts of random sets do") {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 5000; ++round) {
    const bool open = below(3) == 0;
    Occurrences bounds{below(12)};
    if (!open) bounds.max = std::max(1U, bounds.min + below(12));
    CountSets sets;
    // Counts that a repetition can have: up to its maximum, or to its minimum without a maximum.
    const std::uint32_t last = open ? bounds.min : bounds.max;
    std::set<std::uint32_t> counts;
    CountSets::Counts all = 0;
    for (std::uint32_t i = 0, n = 1 + below(6); i < n; ++i) {
      const std::uint32_t one = below(last + 1);
      all                     = counts.empty() ? one : sets.united(all, one, bounds);
      counts.insert(one);
    }
    CAPTURE(round, bounds.min, bounds.max, counts);
    CHECK(ends(sets, all, bounds) == ends(counts, bounds));
    const std::uint32_t horizon  = below(6);
    const CountSets::Counts near = sets.normal(all, bounds, horizon);
    std::set<std::uint32_t> soon, soon_normal;
    for (const std::uint32_t n : ends(counts, bounds)) {
      if (n <= horizon) soon.insert(n);
    }
    for (const std::uint32_t n : ends(sets, near, bounds)) {
      if (n <= horizon) soon_normal.insert(n);
    }
    CHECK(soon_normal == soon);
    CHECK(sets.normal(near, bounds, horizon) == near);
    CountSets other;
    CHECK(ends(other, other.adopt(sets, all), bounds) == ends(counts, bounds));
  }
}

TEST_CASE("CountSets merges counts that meet the minimum into one") {
  CountSets sets;
  CountSets::Counts all = 1;
  for (std::uint32_t count = 2; count <= 64; ++count) all = sets.united(all, count, {0, 64});
  CHECK(all == 1);
  CHECK(sets.size() == 1);  // the empty set, which each pool has
  all = 1;
  for (std::uint32_t count = 2; count <= 64; ++count) all = sets.united(all, count, {50, 64});
  CHECK(sets.may_end(all, {50, 64}));
  CHECK(sets.may_go_on(all, {50, 64}));
  CHECK(sets.bytes() < 10'000);
}
