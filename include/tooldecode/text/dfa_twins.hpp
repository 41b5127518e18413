/// \file
/// DfaTwins: which states of an automaton no short text tells apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

/// Classes of states that no text of at most some bytes tells apart: from all states of a class it
/// leads to states that are alike, or out of the automaton. Of `(\S+\s+){0,99}\S+`, most states of
/// the first words are alike for texts as short as a token, so one mask serves them.
///
/// States are alike if they have the same label and are accepting, boundary and closing alike.
///
/// \par Complexity  construction O(states x columns x log states), and as much again for the states
///                  that longer texts tell apart; 4 bytes per state
/// \par Threads     immutable after construction
/// \par Errors      see BuildBudget
/// \par Source      Moore, Gedanken-experiments on sequential machines, 1956, ended early
class DfaTwins {
 public:
  /// \param length  bytes of the longest text
  /// \param labels  [states] or none
  DfaTwins(const Dfa& dfa, std::size_t length, std::span<const std::uint32_t> labels = {});

  /// The same state for all states of a class: the first of them.
  [[nodiscard]] Dfa::State first(Dfa::State state) const noexcept { return first_[state]; }
  [[nodiscard]] std::size_t bytes() const noexcept { return first_.size() * sizeof(Dfa::State); }

 private:
  std::vector<Dfa::State> first_;  // [states]
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/dfa_twins.ipp>
#endif
