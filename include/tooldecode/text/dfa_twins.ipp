/// \file
/// Definitions of dfa_twins.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_lengths.hpp>
#include <tooldecode/text/dfa_twins.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE DfaTwins::DfaTwins(const Dfa& dfa, std::size_t length,
                                     std::span<const std::uint32_t> labels) {
  using State                           = Dfa::State;
  const std::size_t size                = dfa.size();
  const std::vector<std::uint8_t> bytes = one_of_each_column(dfa);
  const std::size_t columns             = bytes.size();
  BuildBudget::spend(size * columns / 4, 8 * size * columns);

  std::vector<State> next(size * columns);  // [states, columns]
  std::vector<std::vector<State>> before(size);
  for (State s = 0; s < size; ++s) {
    for (std::size_t c = 0; c < columns; ++c) {
      const State to        = dfa.next(s, bytes[c]);
      next[s * columns + c] = to;
      if (to == Dfa::dead) continue;
      if (before[to].empty() || before[to].back() != s) before[to].push_back(s);
    }
  }

  // Classes of texts of no byte, then of texts of one byte more in each round.
  std::vector<std::uint32_t> class_of(size);
  std::vector<std::vector<State>> members;
  std::vector<State> all(size);
  std::iota(all.begin(), all.end(), State{0});
  const auto kind = [&](State s) {
    return std::tuple(labels.empty() ? 0 : labels[s], dfa.accepting(s), dfa.boundary(s),
                      dfa.closing(s));
  };
  std::stable_sort(all.begin(), all.end(), [&](State a, State b) { return kind(a) < kind(b); });
  for (std::size_t i = 0; i < size; ++i) {
    if (i == 0 || kind(all[i - 1]) != kind(all[i])) members.emplace_back();
    members.back().push_back(all[i]);
    class_of[all[i]] = static_cast<std::uint32_t>(members.size() - 1);
  }

  const auto class_behind = [&](State s, std::size_t c) {
    const State to = next[s * columns + c];
    return to == Dfa::dead ? ~std::uint32_t{0} : class_of[to];
  };
  const auto compare = [&](State a, State b) {  // less than, equal to or greater than 0
    for (std::size_t c = 0; c < columns; ++c) {
      const std::uint32_t x = class_behind(a, c), y = class_behind(b, c);
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  };
  std::vector<State> touched = all;
  for (std::size_t round = 0; round < length && !touched.empty(); ++round) {
    BuildBudget::spend(touched.size() * columns / 16);
    // By class, then by the classes behind. Untouched states of a class are still alike.
    std::sort(touched.begin(), touched.end(), [&](State a, State b) {
      if (class_of[a] != class_of[b]) return class_of[a] < class_of[b];
      const int order = compare(a, b);
      return order != 0 ? order < 0 : a < b;
    });
    std::vector<std::vector<State>> leaving;
    for (auto begin = touched.begin(); begin != touched.end();) {
      const std::uint32_t own = class_of[*begin];
      const auto end =
          std::find_if(begin, touched.end(), [&](State s) { return class_of[s] != own; });
      std::vector<std::pair<std::vector<State>::iterator, std::vector<State>::iterator>> groups;
      for (auto from = begin; from != end;) {
        const auto to = std::find_if(from, end, [&](State s) { return compare(*from, s) != 0; });
        groups.emplace_back(from, to);
        from = to;
      }
      // One group keeps the class: the one that is like the untouched states, else the largest.
      auto keeps = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        return a.second - a.first < b.second - b.first;
      });
      if (static_cast<std::size_t>(end - begin) < members[own].size()) {
        std::vector<State> sorted(begin, end);
        std::sort(sorted.begin(), sorted.end());
        const auto untouched = std::find_if(members[own].begin(), members[own].end(), [&](State s) {
          return !std::binary_search(sorted.begin(), sorted.end(), s);
        });
        keeps                = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
          return compare(*group.first, *untouched) == 0;
        });
      }
      for (auto group = groups.begin(); group != groups.end(); ++group) {
        if (group != keeps) leaving.emplace_back(group->first, group->second);
      }
      begin = end;
    }
    touched.clear();
    for (std::vector<State>& group : leaving) {
      std::vector<State>& old = members[class_of[group.front()]];
      std::sort(group.begin(), group.end());
      std::erase_if(old,
                    [&](State s) { return std::binary_search(group.begin(), group.end(), s); });
      for (const State s : group) {
        class_of[s] = static_cast<std::uint32_t>(members.size());
        touched.insert(touched.end(), before[s].begin(), before[s].end());
      }
      members.push_back(std::move(group));
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  }

  first_.resize(size);
  for (const std::vector<State>& some : members) {
    const State least = *std::min_element(some.begin(), some.end());
    for (const State s : some) first_[s] = least;
  }
}

}  // namespace tooldecode::text
