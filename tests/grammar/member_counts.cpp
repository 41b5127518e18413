#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/member_counts.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using tooldecode::grammar::MemberCounts;

namespace {

bool is_closed(const std::vector<MemberCounts::Dependence>& dependent, std::uint32_t set) {
  for (const auto& [member, needed] : dependent) {
    if ((set >> member & 1) != 0 && (set >> needed & 1) == 0) return false;
  }
  return true;
}

MemberCounts::Members members_of(std::uint32_t set, std::size_t size) {
  MemberCounts::Members members(size);
  for (std::size_t i = 0; i < size; ++i) members[i] = (set >> i & 1) != 0 ? 1 : 0;
  return members;
}

}  // namespace

TEST_CASE("MemberCounts reaches exactly the counts that some set with all dependences has") {
  std::size_t reached = 0, missed = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::size_t size = 1 + below(7);
    std::vector<MemberCounts::Dependence> dependent;
    for (std::uint32_t i = below(2 * size); i > 0; --i) {
      dependent.emplace_back(below(size), below(size));
      if (below(2) == 0) dependent.emplace_back(dependent.back().second, dependent.back().first);
    }
    std::vector<std::uint32_t> closed;
    for (std::uint32_t set = 0; set < 1U << size; ++set) {
      if (is_closed(dependent, set)) closed.push_back(set);
    }
    const std::uint32_t live = closed[below(closed.size())];
    const MemberCounts counts(dependent, members_of(live, size));
    REQUIRE(counts.are_few());
    for (const std::uint32_t written : closed) {
      if ((written & ~live) != 0) continue;
      for (std::uint32_t min = 0; min <= size; ++min) {
        for (std::uint32_t max = min; max <= size; ++max) {
          bool expected    = false;
          std::size_t near = 0;
          for (const std::uint32_t set : closed) {
            if ((set & ~live) != 0 || (set & written) != written) continue;
            const auto count = static_cast<std::uint32_t>(std::popcount(set));
            expected |= count >= min && count <= max;
            near += count >= min ? 1 : 0;
          }
          REQUIRE(counts.reaches(members_of(written, size), {min, max}) == expected);
          ++(expected ? reached : missed);
          // Where no count can be passed over, a set that is too small grows into one that fits.
          const auto count = static_cast<std::uint32_t>(std::popcount(written));
          if (!counts.may_pass({min, max}) && count <= max && near != 0) REQUIRE(expected);
        }
      }
    }
  }
  CHECK(reached > 10'000);
  CHECK(missed > 10'000);
}

TEST_CASE("MemberCounts of circles that nothing connects takes few steps, whatever their number") {
  std::vector<MemberCounts::Dependence> dependent;
  constexpr std::uint32_t size = 120;
  for (std::uint32_t i = 0; i < size; i += 3) {
    for (std::uint32_t k = 0; k < 3; ++k) dependent.emplace_back(i + k, i + (k + 1) % 3);
  }
  const MemberCounts counts(dependent, MemberCounts::Members(size, 1));
  const MemberCounts::Members none(size, 0);
  const BuildBudget budget;
  CHECK(counts.may_pass({1, 2}));
  CHECK_FALSE(counts.may_pass({1, 3}));
  REQUIRE(counts.are_few());
  CHECK_FALSE(counts.reaches(none, {58, 59}));
  CHECK(counts.reaches(none, {59, 60}));
  CHECK(budget.spent().steps < 10'000);
}

TEST_CASE("MemberCounts of many members that one needs all counts as having many sets") {
  std::vector<MemberCounts::Dependence> dependent;
  for (std::uint32_t i = 1; i < 20; ++i) dependent.emplace_back(0, i);
  CHECK_FALSE(MemberCounts(dependent, MemberCounts::Members(20, 1)).are_few());
  dependent.resize(6);
  CHECK(MemberCounts(dependent, MemberCounts::Members(20, 1)).are_few());
}
