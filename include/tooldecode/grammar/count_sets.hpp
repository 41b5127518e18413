/// \file
/// CountSets: how many items a repetition may have read, where a text can be cut in several ways.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tooldecode/core/config.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

/// Counts of a repetition as one number: a count itself, or an interned set of counts, which are
/// ranges.
///
/// Where an ambiguous grammar has read a text as 1 to 64 items, that is one range and not 64
/// stacks. Counts that meet the least number differ in nothing but how many more may follow, so of
/// them only the smallest is kept: whatever may follow another of them may follow it.
///
/// \par Complexity  O(ranges) per call, O(1) for a single count
/// \par Threads     `next`, `united` and others that make sets one at a time; the rest needs no
///                  lock
class CountSets {
 public:
  /// Below 2^31 a count; else the number of a set, and 2^31.
  using Counts = std::uint32_t;

  /// Whether the repetition may end with one of the counts.
  [[nodiscard]] bool may_end(Counts counts, const text::Occurrences& bounds) const;
  /// Whether a further item may follow one of the counts.
  [[nodiscard]] bool may_go_on(Counts counts, const text::Occurrences& bounds) const;
  /// How many further items must follow at least.
  [[nodiscard]] std::uint32_t count_owed(Counts counts, const text::Occurrences& bounds) const;
  /// The counts once a further item has begun; requires `may_go_on`.
  [[nodiscard]] Counts next(Counts counts, const text::Occurrences& bounds);
  /// Counts of one and of the other.
  [[nodiscard]] Counts united(Counts a, Counts b, const text::Occurrences& bounds);
  /// The same with those counts as one that `horizon` more items bring to neither bound.
  [[nodiscard]] Counts normal(Counts counts, const text::Occurrences& bounds,
                              std::uint32_t horizon);
  /// The same for a single count.
  [[nodiscard]] static std::uint32_t far_count(const text::Occurrences& bounds, std::uint32_t count,
                                               std::uint32_t horizon) noexcept;

  /// The counts of another object's number, here.
  [[nodiscard]] Counts adopt(const CountSets& from, Counts counts);
  /// Sets made so far.
  [[nodiscard]] std::size_t size() const noexcept { return pool_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return pool_.bytes(); }

 private:
  // Ascending: the first count of a range, and the one behind its last.
  using Ranges                    = WordsPool<std::uint32_t>::Words;
  static constexpr Counts set_bit = Counts{1} << 31;

  static bool is_set(Counts counts) noexcept { return (counts & set_bit) != 0; }
  static std::uint32_t number(Counts counts) noexcept { return counts & ~set_bit; }
  [[nodiscard]] std::uint32_t smallest(Counts counts) const;
  [[nodiscard]] std::uint32_t largest(Counts counts) const;
  void append(Counts counts, Ranges& out) const;

  // The set of some ranges in any order: those below the least count, joined, and one more count.
  Counts make(Ranges ranges, const text::Occurrences& bounds);

  WordsPool<std::uint32_t> pool_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/count_sets.ipp>
#endif
