/// \file
/// StackSets: the stacks of ambiguous texts, several as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/grammar/count_sets.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

/// Interned stacks, and bundles of them that are stacks too: a bundle is a frame of its own kind
/// that stands for several stacks.
///
/// Where a text can be read in many ways, stacks that are alike are merged: those that differ in
/// how many items a repetition has read are one, with a set of counts, and those that have a frame
/// on top in common are left together, over a bundle of what is below it.
///
/// \par Complexity  O(stacks of a bundle) per call, what was made before is remembered
/// \par Threads     members that are not const one at a time; reads need no lock
/// \par Source      graph-structured stacks: Tomita 1987
class StackSets {
 public:
  using Ones = WordsPool<StackId>::Words;
  /// The node of a bundle's frame; of none in a NodeStore.
  static constexpr StoredId bundle{~std::uint32_t{0} - 1};

  explicit StackSets(const NodeStore& nodes) : nodes_(nodes) {}

  [[nodiscard]] StackId push(const StackFrame& frame) { return pool_.push(frame); }
  /// The top frame; requires a stack that is not empty.
  [[nodiscard]] const StackFrame& operator[](StackId id) const noexcept { return pool_[id]; }
  /// The stacks that a bundle stands for.
  [[nodiscard]] const Ones& ones(const StackFrame& frame) const { return bundles_[frame.bundle()]; }
  /// The same, those with a frame on top in common as one.
  [[nodiscard]] const Ones& united_ones(const StackFrame& frame);
  /// How often repetitions have been: `a` of their frames.
  [[nodiscard]] CountSets& counts() noexcept { return counts_; }
  [[nodiscard]] const CountSets& counts() const noexcept { return counts_; }
  /// About how much memory all of this takes.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// One stack for several, whose own bundles are opened.
  [[nodiscard]] StackId joined(const std::vector<StackId>& ids);

  /// The same stack with every count that `horizon` bytes cannot bring to a bound moved to one
  /// value. Without recursion: a model may nest brackets as deep as it likes.
  [[nodiscard]] StackId normal(StackId root, std::uint32_t horizon);

 private:
  using Kind = Grammar::Kind;

  // Stacks that differ only in how many items their repetition has read, as one stack each.
  void join_counts(std::vector<StackId>& ids);
  [[nodiscard]] bool is_repeat(StackId id) const;
  // The same stacks with one for those that have a frame on top in common, over a bundle of what is
  // below it: else what follows the frame is added for each, and an ambiguous grammar doubles its
  // stacks with every level. Remembered; a few stacks are left apart.
  std::uint32_t united(std::uint32_t number);
  [[nodiscard]] StackId known_normal(StackId id) const;

  const NodeStore& nodes_;
  StackPool pool_;
  WordsPool<StackId> bundles_;
  CountSets counts_;
  std::vector<StackId> normal_;        // [stacks], the empty one where not yet known
  std::vector<std::uint32_t> united_;  // [bundles], 0 likewise
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/stack_sets.ipp>
#endif
