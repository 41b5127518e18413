/// \file
/// Definitions of member_counts.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/grammar/member_counts.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE MemberCounts::MemberCounts(const std::vector<Dependence>& dependent, Members live)
    : live_(std::move(live)), needed_(live_.size()) {
  std::vector<Dependence> sorted = dependent;
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t i = 0; i < live_.size(); ++i) {
    if (!live_[i]) continue;
    BuildBudget::spend(live_.size() + 10 * sorted.size());
    Members& needed = needed_[i];
    needed.resize(live_.size());
    needed[i] = 1;
    std::vector<std::uint32_t> open{i};
    while (!open.empty()) {
      const std::uint32_t member = open.back();
      open.pop_back();
      auto at = std::lower_bound(sorted.begin(), sorted.end(), Dependence{member, 0});
      for (; at != sorted.end() && at->first == member; ++at) {
        if (std::exchange(needed[at->second], 1) == 0) open.push_back(at->second);
      }
    }
  }
}

TOOLDECODE_INLINE bool MemberCounts::may_pass(const text::Occurrences& bounds) const {
  std::size_t largest = 1;  // the most members that each need all others of them
  for (std::size_t i = 0; i < live_.size(); ++i) {
    std::size_t size = 0;
    for (std::size_t k = 0; live_[i] && k < live_.size(); ++k) {
      if (live_[k] && needed_[i][k] && needed_[k][i]) ++size;
    }
    largest = std::max(largest, size);
  }
  // From any set below the minimum, one more such group must not pass the maximum.
  return bounds.max - bounds.min < largest - 1;
}

TOOLDECODE_INLINE bool MemberCounts::are_few() const {
  const Members none(live_.size(), 0);
  return std::ranges::none_of(parts_without(none),
                              [&](const Part& part) { return sizes_of(part, none).empty(); });
}

TOOLDECODE_INLINE bool MemberCounts::reaches(const Members& written,
                                             const text::Occurrences& bounds) const {
  const auto first = static_cast<std::size_t>(
      std::count_if(written.begin(), written.end(), [](char one) { return one != 0; }));
  std::vector<char> counts(live_.size() + 1, 0);
  counts[first] = 1;
  for (const Part& part : parts_without(written)) {
    const std::vector<std::size_t> sizes = sizes_of(part, written);
    std::vector<char> sums(counts.size(), 0);
    for (std::size_t count = 0; count < counts.size(); ++count) {
      for (std::size_t i = 0; counts[count] && i < sizes.size(); ++i) sums[count + sizes[i]] = 1;
    }
    counts = std::move(sums);
  }
  for (std::size_t count = bounds.min; count < counts.size() && count <= bounds.max; ++count) {
    if (counts[count]) return true;
  }
  return false;
}

TOOLDECODE_INLINE std::vector<MemberCounts::Part> MemberCounts::parts_without(
    const Members& written) const {
  std::vector<Part> parts;
  Members known(live_.size(), 0);
  const auto is_left = [&](std::uint32_t i) { return live_[i] && !written[i] && !known[i]; };
  for (std::uint32_t i = 0; i < live_.size(); ++i) {
    if (!is_left(i)) continue;
    Part part{i};
    known[i] = 1;
    for (std::size_t at = 0; at < part.size(); ++at) {
      for (std::uint32_t k = 0; k < live_.size(); ++k) {
        if (!is_left(k) || (!needed_[part[at]][k] && !needed_[k][part[at]])) continue;
        known[k] = 1;
        part.push_back(k);
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

TOOLDECODE_INLINE std::vector<std::size_t> MemberCounts::sizes_of(const Part& part,
                                                                  const Members& written) const {
  std::set<Members> sets{Members(part.size(), 0)};
  std::vector<Members> open(sets.begin(), sets.end());
  while (!open.empty()) {
    const Members from = std::move(open.back());
    open.pop_back();
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (from[i]) continue;
      BuildBudget::spend(part.size());
      Members with = from;
      for (std::size_t k = 0; k < part.size(); ++k) {
        with[k] |= !written[part[k]] && needed_[part[i]][part[k]] ? 1 : 0;
      }
      if (!sets.insert(with).second) continue;
      if (sets.size() > max_sets) return {};
      open.push_back(std::move(with));
    }
  }
  std::set<std::size_t> sizes;
  for (const Members& one : sets) {
    sizes.insert(static_cast<std::size_t>(std::count(one.begin(), one.end(), 1)));
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace tooldecode::grammar
