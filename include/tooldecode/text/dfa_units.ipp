#pragma once

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/text/dfa_units.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE DfaUnits::DfaUnits(const Dfa& dfa)
    : hull_(dfa.size(), {Occurrences::unbounded, 0}) {
  const Steps steps = steps_of(dfa);
  find_fewest(dfa, steps);
  find_most(steps);
  find_gaps(dfa, steps);
  const auto reach = [&](std::uint32_t bound) {
    if (bound != Occurrences::unbounded) far_ = std::max(far_, bound);
  };
  for (Dfa::State s = 0; s < dfa.size(); ++s) {
    fewest_  = std::max(fewest_, hull_[s].min);
    is_open_ = is_open_ && (hull_[s].max == Occurrences::unbounded || dfa.live(s).empty());
    for (const auto& [min, max] : (*this)[s]) reach(min), reach(max);
  }
}

TOOLDECODE_INLINE std::span<const Occurrences> DfaUnits::operator[](
    Dfa::State state) const noexcept {
  if (split_.empty() || split_[state] == whole) return {&hull_[state], 1};
  return ranges_[split_[state]];
}

TOOLDECODE_INLINE bool DfaUnits::is_within_reach(Dfa::State state, std::uint32_t count,
                                                 const Occurrences& bounds) const noexcept {
  if (count > bounds.max) return false;
  const std::uint32_t least = bounds.min - std::min(bounds.min, count), most = bounds.max - count;
  const auto ranges = (*this)[state];
  return std::any_of(ranges.begin(), ranges.end(), [&](const Occurrences& range) {
    return range.min <= most && range.max >= least;
  });
}

TOOLDECODE_INLINE std::size_t DfaUnits::bytes() const noexcept {
  using core::heap_bytes;
  std::size_t bytes =
      core::shared_bytes<DfaUnits>() + heap_bytes(hull_) + heap_bytes(split_) + heap_bytes(ranges_);
  for (const Ranges& ranges : ranges_) bytes += heap_bytes(ranges);
  return bytes;
}

TOOLDECODE_INLINE DfaUnits::Steps DfaUnits::steps_of(const Dfa& dfa) {
  BuildBudget::spend(20 * dfa.size());
  Steps steps;
  steps.from.assign(1, 0);
  steps.into.assign(dfa.size() + 1, 0);
  std::vector<Dfa::State> next;
  for (Dfa::State from = 0; from < dfa.size(); ++from) {
    next.clear();
    dfa.for_each_next(from, [&](Dfa::State to) {
      if (next.empty() || next.back() != to) next.push_back(to);
    });
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    for (const Dfa::State to : next) {
      steps.all.push_back({from, to, dfa.boundary(from) && !dfa.closing(to) ? 1U : 0U});
      ++steps.into[to + 1];
    }
    steps.from.push_back(steps.all.size());
  }
  BuildBudget::spend(steps.all.size(), steps.all.size() * (sizeof(Step) + sizeof(std::uint32_t)));
  std::partial_sum(steps.into.begin(), steps.into.end(), steps.into.begin());
  steps.by_target.resize(steps.all.size());
  std::vector<std::size_t> place(steps.into.begin(), steps.into.end() - 1);
  for (std::uint32_t i = 0; i < steps.all.size(); ++i) {
    steps.by_target[place[steps.all[i].to]++] = i;
  }
  return steps;
}

TOOLDECODE_INLINE void DfaUnits::find_fewest(const Dfa& dfa, const Steps& steps) {
  std::deque<Dfa::State> work;  // fewest units first
  for (Dfa::State s = 0; s < dfa.size(); ++s) {
    if (dfa.accepting(s)) hull_[s].min = 0, work.push_back(s);
  }
  while (!work.empty()) {
    const Dfa::State at = work.front();
    work.pop_front();
    steps.for_each_into(at, [&](const Step& step) {
      const std::uint32_t units = hull_[at].min + step.units;
      if (units >= hull_[step.from].min) return;
      hull_[step.from].min = units;
      step.units == 0 ? work.push_front(step.from) : work.push_back(step.from);
    });
  }
}

TOOLDECODE_INLINE void DfaUnits::find_most(const Steps& steps) {
  std::vector<std::size_t> open(hull_.size());  // steps from each state
  std::vector<Dfa::State> work;
  for (Dfa::State s = 0; s < open.size(); ++s) {
    open[s] = steps.from[s + 1] - steps.from[s];
    if (open[s] == 0) work.push_back(s);
  }
  while (!work.empty()) {
    const Dfa::State at = work.back();
    work.pop_back();
    steps.for_each_into(at, [&](const Step& step) {
      hull_[step.from].max = std::max(hull_[step.from].max, hull_[at].max + step.units);
      if (--open[step.from] == 0) work.push_back(step.from);
    });
  }
  for (Dfa::State s = 0; s < open.size(); ++s) {  // the others lead to a loop
    if (open[s] != 0) hull_[s].max = Occurrences::unbounded;
  }
}

// The numbers of a state are those of the states after it, and these equations have one solution:
// ranges that solve them are the numbers. Starts with what lies between the bounds.
TOOLDECODE_INLINE void DfaUnits::find_gaps(const Dfa& dfa, const Steps& steps) {
  std::vector<Dfa::State> work(hull_.size());
  std::iota(work.begin(), work.end(), Dfa::State{0});
  std::stable_sort(work.begin(), work.end(),
                   [&](Dfa::State a, Dfa::State b) { return hull_[a].min < hull_[b].min; });
  std::vector<char> queued(hull_.size(), 1);
  Ranges found;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const Dfa::State state = work[i];
    queued[state]          = 0;
    collect(dfa, steps, state, found);
    const auto known = (*this)[state];
    if (std::equal(found.begin(), found.end(), known.begin(), known.end())) continue;
    is_known_ = found.size() <= max_ranges && i <= max_rounds * hull_.size();
    if (!is_known_) return;
    BuildBudget::spend(found.size());
    if (split_.empty()) split_.assign(hull_.size(), whole);
    if (split_[state] == whole) {
      split_[state] = static_cast<std::uint32_t>(ranges_.size());
      ranges_.emplace_back();
    }
    ranges_[split_[state]] = found;
    steps.for_each_into(state, [&](const Step& step) {
      if (!std::exchange(queued[step.from], 1)) work.push_back(step.from);
    });
  }
}

TOOLDECODE_INLINE void DfaUnits::collect(const Dfa& dfa, const Steps& steps, Dfa::State state,
                                         Ranges& out) const {
  out.clear();
  if (dfa.accepting(state)) out.push_back({0, 0});
  for (std::size_t i = steps.from[state]; i < steps.from[state + 1]; ++i) {
    const Step& step = steps.all[i];
    for (const auto& [min, max] : (*this)[step.to]) {
      out.push_back({min + step.units, max == Occurrences::unbounded ? max : max + step.units});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Occurrences& a, const Occurrences& b) { return a.min < b.min; });
  std::size_t kept = 0;
  for (const Occurrences& one : out) {
    Occurrences& last = out[kept];
    if (last.max == Occurrences::unbounded || one.min <= last.max + 1) {
      last.max = std::max(last.max, one.max);
    } else {
      out[++kept] = one;
    }
  }
  out.resize(kept + 1);
}

}  // namespace tooldecode::text
