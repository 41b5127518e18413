/// \file
/// CountSets: the item counts that a repetition may have if its text is ambiguous.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

/// The possible counts of a repetition as one number: a count itself, or an interned set of counts,
/// stored as ranges.
///
/// If an ambiguous grammar has read a text as 1 to 64 items, that is one range and not 64 stacks.
/// Of the counts that meet the minimum only the smallest is kept: whatever may follow a larger one
/// may follow it too.
///
/// \par Complexity  O(ranges) per call, O(1) for a single count
/// \par Threads     functions that make sets, such as `next` and `united`, one at a time; the rest
///                  needs no lock
class CountSets {
 public:
  /// A count if below 2^31, else 2^31 plus the number of a set.
  using Counts = std::uint32_t;

  [[nodiscard]] bool may_end(Counts counts, const text::Occurrences& bounds) const;
  [[nodiscard]] bool may_go_on(Counts counts, const text::Occurrences& bounds) const;
  /// The fewest items that must still follow.
  [[nodiscard]] std::uint32_t count_owed(Counts counts, const text::Occurrences& bounds) const;
  /// The counts after one more item has begun; requires `may_go_on`.
  [[nodiscard]] Counts next(Counts counts, const text::Occurrences& bounds);
  [[nodiscard]] Counts united(Counts a, Counts b, const text::Occurrences& bounds);
  /// The counts, with all that `horizon` more items bring to neither bound replaced by one value.
  [[nodiscard]] Counts normal(Counts counts, const text::Occurrences& bounds,
                              std::uint32_t horizon);
  /// The same for a single count.
  [[nodiscard]] static std::uint32_t far_count(const text::Occurrences& bounds, std::uint32_t count,
                                               std::uint32_t horizon) noexcept;

  /// The number here for counts of another object.
  [[nodiscard]] Counts adopt(const CountSets& from, Counts counts);
  [[nodiscard]] std::size_t size() const noexcept { return pool_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return pool_.bytes(); }

 private:
  // Ascending pairs: the first count of a range, and one past its last.
  using Ranges                    = WordsPool<std::uint32_t>::Words;
  static constexpr Counts set_bit = Counts{1} << 31;

  static bool is_set(Counts counts) noexcept { return (counts & set_bit) != 0; }
  static std::uint32_t number(Counts counts) noexcept { return counts & ~set_bit; }
  [[nodiscard]] std::uint32_t smallest(Counts counts) const;
  [[nodiscard]] std::uint32_t largest(Counts counts) const;
  void append(Counts counts, Ranges& out) const;

  // The set of some ranges in any order: joins those below the minimum and adds one count at or
  // above it.
  Counts make(Ranges ranges, const text::Occurrences& bounds);

  WordsPool<std::uint32_t> pool_;
};

inline bool CountSets::may_end(Counts counts, const text::Occurrences& bounds) const {
  return largest(counts) >= bounds.min;
}

inline bool CountSets::may_go_on(Counts counts, const text::Occurrences& bounds) const {
  return bounds.max == text::Occurrences::unbounded || smallest(counts) < bounds.max;
}

inline std::uint32_t CountSets::count_owed(Counts counts, const text::Occurrences& bounds) const {
  return may_end(counts, bounds) ? 0 : bounds.min - largest(counts);
}

inline CountSets::Counts CountSets::next(Counts counts, const text::Occurrences& bounds) {
  if (!is_set(counts)) {
    return bounds.max == text::Occurrences::unbounded ? std::min(counts + 1, bounds.min)
                                                      : counts + 1;
  }
  Ranges ranges = pool_[number(counts)];
  for (std::uint32_t& end : ranges) ++end;
  return make(std::move(ranges), bounds);
}

inline CountSets::Counts CountSets::united(Counts a, Counts b, const text::Occurrences& bounds) {
  if (a == b) return a;
  if (!is_set(a) && !is_set(b) && std::min(a, b) >= bounds.min) return std::min(a, b);
  Ranges all;
  append(a, all), append(b, all);
  return make(std::move(all), bounds);
}

inline CountSets::Counts CountSets::normal(Counts counts, const text::Occurrences& bounds,
                                           std::uint32_t horizon) {
  if (!is_set(counts)) return far_count(bounds, counts, horizon);
  Ranges ranges;
  const Ranges& from      = pool_[number(counts)];
  const std::uint32_t min = bounds.min > horizon ? bounds.min - horizon : 0;  // smaller: far from
                                                                              // min
  for (std::size_t i = 0; i < from.size(); i += 2) {
    if (from[i] < min) ranges.insert(ranges.end(), {0, 1});
    if (from[i + 1] <= min) continue;
    const std::uint32_t first = std::max(from[i], min);
    if (first < bounds.min) {
      ranges.insert(ranges.end(), {first, std::min(from[i + 1], bounds.min)});
    }
    if (from[i + 1] <= bounds.min) continue;
    const std::uint32_t enough = far_count(bounds, std::max(first, bounds.min), horizon);
    ranges.insert(ranges.end(), {enough, enough + 1});
  }
  return make(std::move(ranges), bounds);
}

inline std::uint32_t CountSets::far_count(const text::Occurrences& bounds, std::uint32_t count,
                                          std::uint32_t horizon) noexcept {
  if (count < bounds.min) return bounds.min - count > horizon ? 0 : count;
  const bool far = bounds.max == text::Occurrences::unbounded || bounds.max - count > horizon;
  return far ? bounds.min : count;
}

inline CountSets::Counts CountSets::adopt(const CountSets& from, Counts counts) {
  if (!is_set(counts)) return counts;
  return set_bit | pool_.intern(from.pool_[number(counts)]);
}

inline std::uint32_t CountSets::smallest(Counts counts) const {
  return is_set(counts) ? pool_[number(counts)].front() : counts;
}

inline std::uint32_t CountSets::largest(Counts counts) const {
  return is_set(counts) ? pool_[number(counts)].back() - 1 : counts;
}

inline void CountSets::append(Counts counts, Ranges& out) const {
  if (!is_set(counts)) {
    out.insert(out.end(), {counts, counts + 1});
    return;
  }
  const Ranges& ranges = pool_[number(counts)];
  out.insert(out.end(), ranges.begin(), ranges.end());
}

inline CountSets::Counts CountSets::make(Ranges ranges, const text::Occurrences& bounds) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sorted;
  std::uint32_t enough = text::Occurrences::unbounded;
  for (std::size_t i = 0; i < ranges.size(); i += 2) {
    const std::uint32_t first = ranges[i], end = ranges[i + 1];
    if (end > bounds.min) enough = std::min(enough, std::max(first, bounds.min));
    if (first < bounds.min) sorted.emplace_back(first, std::min(end, bounds.min));
  }
  // Counts past the maximum are dropped: the repetition has ended, and its end was followed before.
  if (enough != text::Occurrences::unbounded && enough <= bounds.max) {
    sorted.emplace_back(enough, enough + 1);
  }
  std::sort(sorted.begin(), sorted.end());
  ranges.clear();
  for (const auto& [first, end] : sorted) {
    if (!ranges.empty() && first <= ranges.back()) {
      ranges.back() = std::max(ranges.back(), end);
    } else {
      ranges.insert(ranges.end(), {first, end});
    }
  }
  TOOLDECODE_ASSERT(!ranges.empty());
  if (ranges.size() == 2 && ranges[1] - ranges[0] == 1) return ranges[0];
  return set_bit | pool_.intern(std::move(ranges));
}

}  // namespace tooldecode::grammar
