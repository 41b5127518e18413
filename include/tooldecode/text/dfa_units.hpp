/// \file
/// DfaUnits: how many counted units lead from each state of a DFA to acceptance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::text {

/// For each state of a DFA, the numbers of units that lead from it to acceptance, as ranges.
///
/// With them bounds on the units of a text are a counter beside the state, without dead ends: a
/// step is allowed if an end within the bounds remains.
///
/// \par Complexity  construction O(states x columns), more if there are gaps between ranges; 8 bytes
///                  per state
/// \par Threads     immutable after construction
/// \par Errors      see BuildBudget
class DfaUnits {
 public:
  using Ranges = std::vector<Occurrences>;

  /// \param dfa  every loop in it has a unit
  explicit DfaUnits(const Dfa& dfa);

  /// Whether few ranges have all numbers; those of `(ab)*` do not. The rest is unknown if not.
  [[nodiscard]] bool is_known() const noexcept { return is_known_; }
  /// Units from a state to acceptance, without the one that the state is in: ascending, with gaps
  /// between the ranges.
  [[nodiscard]] std::span<const Occurrences> operator[](Dfa::State state) const noexcept;
  /// Whether an end within bounds remains in a state, after `count` units.
  [[nodiscard]] bool is_within_reach(Dfa::State state, std::uint32_t count,
                                     const Occurrences& bounds) const noexcept;
  /// Whether any number of units, however great, may follow each state but the last ones.
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  /// The most units that a state needs.
  [[nodiscard]] std::uint32_t fewest() const noexcept { return fewest_; }
  /// The greatest bound of a range.
  [[nodiscard]] std::uint32_t far() const noexcept { return far_; }
  /// Approximate memory of the tables.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr std::size_t max_ranges = 16, max_rounds = 64;
  static constexpr std::uint32_t whole = ~std::uint32_t{0};
  struct Step {
    Dfa::State from, to;
    std::uint32_t units;
  };
  // The distinct steps by source, and their order by target.
  struct Steps {
    std::vector<Step> all;
    std::vector<std::size_t> from, into;  // [states + 1]: first steps of `all` and of `by_target`
    std::vector<std::uint32_t> by_target;
    template <class Visit>
    void for_each_into(Dfa::State to, Visit visit) const {
      for (std::size_t i = into[to]; i < into[to + 1]; ++i) visit(all[by_target[i]]);
    }
  };

  static Steps steps_of(const Dfa& dfa);
  void find_fewest(const Dfa& dfa, const Steps& steps);
  void find_most(const Steps& steps);
  void find_gaps(const Dfa& dfa, const Steps& steps);
  // The numbers of a state from those of the states after it.
  void collect(const Dfa& dfa, const Steps& steps, Dfa::State state, Ranges& out) const;

  Ranges hull_;                       // [states]
  std::vector<std::uint32_t> split_;  // [states] or none: index in ranges_, or `whole`
  std::vector<Ranges> ranges_;        // of states with gaps
  std::uint32_t fewest_ = 0, far_ = 0;
  bool is_known_ = true, is_open_ = true;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/dfa_units.ipp>
#endif
