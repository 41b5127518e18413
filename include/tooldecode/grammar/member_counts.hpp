/// \file
/// MemberCounts: how many members a keyed set can have whose members depend on each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::grammar {

/// The numbers of members of the sets that hold, with each member, those that it depends on.
///
/// Members that depend on each other in a circle come together, so that a set may pass over a
/// count: of two such members there are none or two.
///
/// \par Complexity  O(members x dependences) for a part that dependences connect, times its sets
/// \par Threads     may run concurrently
class MemberCounts {
 public:
  using Dependence = std::pair<std::uint32_t, std::uint32_t>;
  using Members    = std::vector<char>;  // [members]
  /// A part that dependences connect has at most this many sets; see `are_few`.
  static constexpr std::size_t max_sets = 256;

  /// \param live  the members that there can be; all that they depend on are among them
  MemberCounts(const std::vector<Dependence>& dependent, Members live);

  /// Whether the members that are added one by one, each with what it depends on, can pass over
  /// all counts within the bounds.
  [[nodiscard]] bool may_pass(const text::Occurrences& bounds) const;
  /// Whether `reaches` has few sets to try.
  [[nodiscard]] bool are_few() const;
  /// Whether members can be added to those written so that their number is within the bounds.
  ///
  /// \param written  with all members that they depend on
  [[nodiscard]] bool reaches(const Members& written, const text::Occurrences& bounds) const;

 private:
  using Part = std::vector<std::uint32_t>;

  [[nodiscard]] std::vector<Part> parts_without(const Members& written) const;
  // The numbers of members of a part's sets, ascending; empty if there are too many sets.
  [[nodiscard]] std::vector<std::size_t> sizes_of(const Part& part, const Members& written) const;

  Members live_;
  std::vector<Members> needed_;  // [members]: what each needs, itself too; empty if it is not live
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/member_counts.ipp>
#endif
