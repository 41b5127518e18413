#pragma once

#include <mutex>
#include <utility>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/mask/token_classes.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

namespace tooldecode {

struct VocabularyIndex::Shared {
  Shared(Vocabulary from, std::size_t max, const BuildLimits& limits)
      : vocabulary(std::move(from)),
        trie(vocabulary::make_trie(vocabulary)),
        classes(trie, vocabulary.size()),
        budget(max),
        mask_limits(limits) {}
  Vocabulary vocabulary;
  core::ByteTrie trie;
  mask::TokenClasses classes;
  std::size_t budget;
  BuildLimits mask_limits;
  std::mutex mutex;  // guards the following
  std::shared_ptr<mask::SharedStates> states;
};

TOOLDECODE_INLINE VocabularyIndex::VocabularyIndex(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)), vocabulary_(&shared_->vocabulary) {}

TOOLDECODE_INLINE VocabularyIndex::VocabularyIndex(const Vocabulary& vocabulary)
    : VocabularyIndex(shared_of(vocabulary)) {}

TOOLDECODE_INLINE VocabularyIndex::VocabularyIndex(Vocabulary vocabulary, std::size_t budget,
                                                   const BuildLimits& mask_limits)
    : VocabularyIndex(std::make_shared<Shared>(std::move(vocabulary), budget, mask_limits)) {}

TOOLDECODE_INLINE std::shared_ptr<VocabularyIndex::Shared> VocabularyIndex::shared_of(
    const Vocabulary& vocabulary) {
  static std::mutex mutex;  // guards the pointers of all vocabularies, for a moment
  std::shared_ptr<Shared> made;
  const auto keep = [&] {
    const std::lock_guard lock(mutex);
    auto kept = std::static_pointer_cast<Shared>(vocabulary.index_->lock());
    if (!kept && made) *vocabulary.index_ = kept = made;
    return kept;
  };
  if (auto kept = keep()) return kept;
  // Not by make_shared: the vocabulary's weak pointer would keep the memory after the last user.
  made.reset(new Shared(vocabulary, default_budget, {}));
  return keep();
}

TOOLDECODE_INLINE const core::ByteTrie& VocabularyIndex::trie() const noexcept {
  return shared_->trie;
}

TOOLDECODE_INLINE std::size_t VocabularyIndex::budget() const noexcept {
  return shared_->budget;
}

TOOLDECODE_INLINE BuildBudget VocabularyIndex::mask_budget() const {
  return BuildBudget(shared_->mask_limits, "mask_limits");
}

TOOLDECODE_INLINE std::shared_ptr<mask::SharedStates> VocabularyIndex::states() const {
  const std::lock_guard lock(shared_->mutex);
  const auto bytes = [&] {
    return shared_->states->bytes() + shared_->states->automaton().nodes().bytes();
  };
  if (!shared_->states || bytes() > shared_->budget) {
    shared_->states = std::make_shared<mask::SharedStates>(vocabulary(), trie(), shared_->classes);
  }
  return shared_->states;
}

}  // namespace tooldecode
