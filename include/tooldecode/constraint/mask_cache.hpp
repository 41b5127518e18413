/// \file
/// MaskCache: everything about a vocabulary that masks need, computed once and shared by
/// constraints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <tooldecode/constraint/lexeme_slice.hpp>
#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

namespace tooldecode {

/// A vocabulary with its byte trie and its lexeme slices: make one per vocabulary, give it to every
/// constraint. Copies share what is inside.
///
/// \par Complexity  construction O(bytes of the vocabulary); a slice is made when first asked for
/// \par Threads     every const member may run concurrently
/// \par Errors      none
class MaskCache {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a vocabulary is all that a cache needs
  MaskCache(Vocabulary vocabulary) : shared_(std::make_shared<Shared>(std::move(vocabulary))) {}

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return shared_->vocabulary; }
  [[nodiscard]] const VocabularyTrie& trie() const noexcept { return shared_->trie; }

  /// What the tokens below `node` do to a lexeme that is in `state`.
  [[nodiscard]] const LexemeSlice& slice(const DfaPointer& dfa, Dfa::State state,
                                         VocabularyTrie::NodeIndex node) const {
    const std::lock_guard lock(shared_->mutex);
    const std::size_t lexeme = number(dfa);
    auto& slice              = shared_->slices[{lexeme, state, node}];
    if (!slice) {
      slice = std::make_unique<LexemeSlice>(vocabulary(), trie(), *dfa, state, node);
    }
    return *slice;
  }

 private:
  struct Shared {
    explicit Shared(Vocabulary from) : vocabulary(std::move(from)), trie(vocabulary) {}
    Vocabulary vocabulary;
    VocabularyTrie trie;
    std::mutex mutex;  // guards what follows
    std::unordered_multimap<std::uint64_t, std::pair<DfaPointer, std::size_t>> lexemes;
    std::map<std::tuple<std::size_t, Dfa::State, VocabularyTrie::NodeIndex>,
             std::unique_ptr<const LexemeSlice>>
        slices;
  };

  // Lexemes are the same when their tables are, whichever grammar made them.
  [[nodiscard]] std::size_t number(const DfaPointer& dfa) const {
    auto& lexemes            = shared_->lexemes;
    const auto [first, last] = lexemes.equal_range(dfa->hash());
    for (auto known = first; known != last; ++known) {
      const auto& [other, number] = known->second;
      if (other == dfa || other->rows() == dfa->rows()) return number;
    }
    const std::size_t fresh = lexemes.size();
    lexemes.emplace(dfa->hash(), std::pair(dfa, fresh));
    return fresh;
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace tooldecode
