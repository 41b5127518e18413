/// \file
/// VocabularyIndex: everything about a vocabulary that masks need, computed once and shared by
/// constraints.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include <tooldecode/constraint/shared_states.hpp>
#include <tooldecode/constraint/token_classes.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

namespace tooldecode {

/// A vocabulary with its byte trie and the states that constraints over it share: make one per
/// vocabulary, give it to every constraint. Copies share what is inside.
///
/// Memory is bounded by a budget: once the shared states have grown past it, later constraints
/// begin anew, and so do earlier ones when they are renewed (GrammarConstraint::renew); until then
/// they keep what they have, so no state is invalidated behind its owner's back.
///
/// \par Complexity  construction O(bytes of the vocabulary)
/// \par Threads     every const member may run concurrently
/// \par Errors      none
class VocabularyIndex {
 public:
  static constexpr std::size_t default_budget = std::size_t{512} << 20;

  /// \param budget  bytes that the shared states may take before new ones are begun
  // NOLINTNEXTLINE(google-explicit-constructor): a vocabulary is all that a cache needs
  VocabularyIndex(Vocabulary vocabulary, std::size_t budget = default_budget)
      : shared_(std::make_shared<Shared>(std::move(vocabulary), budget)) {}

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return shared_->vocabulary; }
  [[nodiscard]] const core::ByteTrie& trie() const noexcept { return shared_->trie; }

  [[nodiscard]] std::size_t budget() const noexcept { return shared_->budget; }

  /// The states for a new constraint; they refer to the vocabulary, so it must be kept too.
  [[nodiscard]] std::shared_ptr<constraint::SharedStates> states() const {
    const std::lock_guard lock(shared_->mutex);
    const auto bytes = [&] {
      return shared_->states->bytes() + shared_->states->automaton().nodes().bytes();
    };
    if (!shared_->states || bytes() > shared_->budget) {
      shared_->states =
          std::make_shared<constraint::SharedStates>(vocabulary(), trie(), shared_->classes);
    }
    return shared_->states;
  }

 private:
  struct Shared {
    Shared(Vocabulary from, std::size_t max)
        : vocabulary(std::move(from)),
          trie(vocabulary::make_trie(vocabulary)),
          classes(trie, vocabulary.size()),
          budget(max) {}
    Vocabulary vocabulary;
    core::ByteTrie trie;
    constraint::TokenClasses classes;
    std::size_t budget;
    std::mutex mutex;  // guards what follows
    std::shared_ptr<constraint::SharedStates> states;
  };

  std::shared_ptr<Shared> shared_;
};

}  // namespace tooldecode
