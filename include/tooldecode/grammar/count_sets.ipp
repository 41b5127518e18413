/// \file
/// What count_sets.hpp declares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/grammar/count_sets.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE bool CountSets::may_end(Counts counts, const text::Occurrences& bounds) const {
  return largest(counts) >= bounds.min;
}

TOOLDECODE_INLINE bool CountSets::may_go_on(Counts counts, const text::Occurrences& bounds) const {
  return bounds.max == text::Occurrences::unbounded || smallest(counts) < bounds.max;
}

TOOLDECODE_INLINE std::uint32_t CountSets::count_owed(Counts counts,
                                                      const text::Occurrences& bounds) const {
  return may_end(counts, bounds) ? 0 : bounds.min - largest(counts);
}

TOOLDECODE_INLINE CountSets::Counts CountSets::next(Counts counts,
                                                    const text::Occurrences& bounds) {
  if (!is_set(counts)) {
    return bounds.max == text::Occurrences::unbounded ? std::min(counts + 1, bounds.min)
                                                      : counts + 1;
  }
  Ranges ranges = pool_[number(counts)];
  for (std::uint32_t& end : ranges) ++end;
  return make(std::move(ranges), bounds);
}

TOOLDECODE_INLINE CountSets::Counts CountSets::united(Counts a, Counts b,
                                                      const text::Occurrences& bounds) {
  if (a == b) return a;
  if (!is_set(a) && !is_set(b) && std::min(a, b) >= bounds.min) return std::min(a, b);
  Ranges all;
  append(a, all), append(b, all);
  return make(std::move(all), bounds);
}

TOOLDECODE_INLINE CountSets::Counts CountSets::normal(Counts counts,
                                                      const text::Occurrences& bounds,
                                                      std::uint32_t horizon) {
  if (!is_set(counts)) return far_count(bounds, counts, horizon);
  Ranges ranges;
  const Ranges& from      = pool_[number(counts)];
  const std::uint32_t min = bounds.min > horizon ? bounds.min - horizon : 0;  // not far
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

TOOLDECODE_INLINE std::uint32_t CountSets::far_count(const text::Occurrences& bounds,
                                                     std::uint32_t count,
                                                     std::uint32_t horizon) noexcept {
  if (count < bounds.min) return bounds.min - count > horizon ? 0 : count;
  const bool far = bounds.max == text::Occurrences::unbounded || bounds.max - count > horizon;
  return far ? bounds.min : count;
}

TOOLDECODE_INLINE CountSets::Counts CountSets::adopt(const CountSets& from, Counts counts) {
  if (!is_set(counts)) return counts;
  return set_bit | pool_.intern(from.pool_[number(counts)]);
}

TOOLDECODE_INLINE std::uint32_t CountSets::smallest(Counts counts) const {
  return is_set(counts) ? pool_[number(counts)].front() : counts;
}

TOOLDECODE_INLINE std::uint32_t CountSets::largest(Counts counts) const {
  return is_set(counts) ? pool_[number(counts)].back() - 1 : counts;
}

TOOLDECODE_INLINE void CountSets::append(Counts counts, Ranges& out) const {
  if (!is_set(counts)) {
    out.insert(out.end(), {counts, counts + 1});
    return;
  }
  const Ranges& ranges = pool_[number(counts)];
  out.insert(out.end(), ranges.begin(), ranges.end());
}

TOOLDECODE_INLINE CountSets::Counts CountSets::make(Ranges ranges,
                                                    const text::Occurrences& bounds) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sorted;
  std::uint32_t enough = text::Occurrences::unbounded;
  for (std::size_t i = 0; i < ranges.size(); i += 2) {
    const std::uint32_t first = ranges[i], end = ranges[i + 1];
    if (end > bounds.min) enough = std::min(enough, std::max(first, bounds.min));
    if (first < bounds.min) sorted.emplace_back(first, std::min(end, bounds.min));
  }
  // Past the most the repetition has ended; it had ended before, and that stack has been left.
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
