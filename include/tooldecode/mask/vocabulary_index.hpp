/// \file
/// VocabularyIndex: what masks need to know of a vocabulary, computed once and shared by
/// constraints.
#pragma once

#include <cstddef>
#include <memory>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace mask {
class SharedStates;
}  // namespace mask
namespace core {
class ByteTrie;
}  // namespace core

/// A vocabulary with its byte trie and the states that its constraints share; copies share their
/// contents.
///
/// A Vocabulary converts to its index: its constraints share one while any of them is alive. Make
/// an index yourself to keep it longer, or to choose its budget.
///
/// A budget bounds the memory. When the shared states have grown past it, new constraints start
/// with empty states; existing constraints keep theirs, which stay valid until you call
/// Constraint::reset.
///
/// \par Complexity  construction O(bytes of the vocabulary); of a vocabulary whose index is in use,
///                  O(1)
/// \par Threads     const members may run concurrently
class VocabularyIndex {
 public:
  static constexpr std::size_t default_budget = std::size_t{512} << 20;

  /// The index of a vocabulary, of which its copies share one while it is in use.
  // NOLINTNEXTLINE(google-explicit-constructor): a vocabulary is all that an index needs
  VocabularyIndex(const Vocabulary& vocabulary);
  /// An index that shares nothing with others.
  ///
  /// \param budget       bytes of the shared states after which new ones are started
  /// \param mask_limits  limits for one mask, one token, one jump-forward string or one search for
  ///                     the end of a text; past them, each throws Error{limit_exceeded}. What
  ///                     earlier masks have found is not charged again. A thread can also cancel
  ///                     them, see BuildBudget
  VocabularyIndex(Vocabulary vocabulary, std::size_t budget, const BuildLimits& mask_limits = {});

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return *vocabulary_; }
  [[nodiscard]] const core::ByteTrie& trie() const noexcept;

  [[nodiscard]] std::size_t budget() const noexcept;

  /// The budget of one mask, token, jump-forward string or search; see the constructor.
  [[nodiscard]] BuildBudget mask_budget() const;

  /// The states for a new constraint. They refer to the vocabulary; keep it alive too.
  [[nodiscard]] std::shared_ptr<mask::SharedStates> states() const;

 private:
  struct Shared;

  explicit VocabularyIndex(std::shared_ptr<Shared> shared);
  static std::shared_ptr<Shared> shared_of(const Vocabulary& vocabulary);

  std::shared_ptr<Shared> shared_;
  const Vocabulary* vocabulary_;  // owned by shared_
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/vocabulary_index.ipp>
#endif
