/// \file
/// VocabularyIndex: everything about a vocabulary that masks need, computed once and shared by
/// constraints.
#pragma once

#include <cstddef>
#include <memory>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace constraint {
class SharedStates;
}  // namespace constraint
namespace core {
class ByteTrie;
}  // namespace core

/// A vocabulary with its byte trie and the states that constraints over it share: make one per
/// vocabulary, give it to every constraint. Copies share what is inside.
///
/// Memory is bounded by a budget: once the shared states have grown past it, later constraints
/// begin anew, and so do earlier ones when they are renewed (Constraint::renew); until then
/// they keep what they have, so no state is invalidated behind its owner's back.
///
/// \par Complexity  construction O(bytes of the vocabulary)
/// \par Threads     every const member may run concurrently
class VocabularyIndex {
 public:
  static constexpr std::size_t default_budget = std::size_t{512} << 20;

  /// \param budget       bytes that the shared states may take before new ones are begun
  /// \param mask_limits  what one mask, one token that is read, one jump-forward string and one
  ///                     search for the end of a text may cost; past it, each of them is an
  ///                     Error{limit_exceeded}. See BuildBudget, by which a thread cancels them too
  // NOLINTNEXTLINE(google-explicit-constructor): a vocabulary is all that a cache needs
  VocabularyIndex(Vocabulary vocabulary, std::size_t budget = default_budget,
                  const BuildLimits& mask_limits = {});

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return *vocabulary_; }
  [[nodiscard]] const core::ByteTrie& trie() const noexcept;

  [[nodiscard]] std::size_t budget() const noexcept;

  /// What a mask, a token, a jump-forward string or a search is charged to, see the constructor.
  [[nodiscard]] BuildBudget mask_budget() const;

  /// The states for a new constraint; they refer to the vocabulary, so it must be kept too.
  [[nodiscard]] std::shared_ptr<constraint::SharedStates> states() const;

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;
  const Vocabulary* vocabulary_;  // what is shared has it
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/vocabulary_index.ipp>
#endif
