/// \file
/// SharedStates: the states, steps and masks that constraints over one vocabulary have in common.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/constraint/lexeme_slice.hpp>
#include <tooldecode/constraint/token_classes.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/constraint/transition_cache.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::constraint {

/// The allowed tokens of a state: those of `base`, if any, without `removed`, and `added`.
struct MaskEntry {
  const TokenMask* base = nullptr;
  std::unique_ptr<const TokenMask> own{};  ///< what `base` points to, where no slice has it
  std::vector<TokenId> removed{};
  std::vector<TokenId> added{};

  void fill(MaskView words) const noexcept;
};

class StatesRenewal;

/// An automaton with the masks of its states, shared by constraints: what one request has visited
/// is ready for the next, whichever schema it came from.
///
/// It only grows; whoever wants less memory starts a new one, and constraints keep the old one as
/// long as they live: one without any grammar (VocabularyIndex), or one of the same grammars
/// (StatesRenewal).
///
/// \par Complexity  a slice is made when it has been asked for a few times
/// \par Threads     every member may run concurrently
class SharedStates {
 public:
  SharedStates(const Vocabulary& vocabulary, const core::ByteTrie& trie,
               const TokenClasses& classes);
  /// The same grammars, without states and masks.
  explicit SharedStates(const SharedStates& from);
  SharedStates& operator=(const SharedStates&) = delete;
  ~SharedStates()                              = default;

  /// One for all constraints of these states.
  [[nodiscard]] std::shared_ptr<StatesRenewal> renewal() const;

  /// Tells apart whose states are whose; never 0.
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return *vocabulary_; }
  [[nodiscard]] const core::ByteTrie& trie() const noexcept { return *trie_; }
  [[nodiscard]] const TokenClasses& classes() const noexcept { return *classes_; }
  [[nodiscard]] grammar::Automaton& automaton() noexcept { return automaton_; }
  [[nodiscard]] const grammar::Automaton& automaton() const noexcept { return automaton_; }
  [[nodiscard]] TransitionCache& transitions() const noexcept { return transitions_; }

  /// What the tokens below `node` do to a lexeme that is in `state`; null when it is asked for the
  /// first times: a slice pays where it serves several masks.
  [[nodiscard]] const LexemeSlice* slice(const text::DfaPointer& dfa, text::Dfa::State state,
                                         core::ByteTrie::NodeIndex node) const;

  /// The same, made now if need be.
  [[nodiscard]] const LexemeSlice& ready_slice(const text::DfaPointer& dfa, text::Dfa::State state,
                                               core::ByteTrie::NodeIndex node) const;

  /// The mask of a state; `make()` gives it where it is not known.
  template <class Make>
  const MaskEntry& mask(grammar::Automaton::State state, Make make) const {
    std::atomic<const void*>& slot = automaton_.attachment(state);
    if (const void* known = slot.load(std::memory_order_acquire)) {
      return *static_cast<const MaskEntry*>(known);
    }
    auto entry = std::make_unique<const MaskEntry>(make());
    const std::lock_guard lock(mutex_);
    if (const void* known = slot.load(std::memory_order_acquire)) {
      return *static_cast<const MaskEntry*>(known);
    }
    const MaskEntry& kept = *masks_.emplace_back(std::move(entry));
    bytes_ += sizeof(MaskEntry) +
              sizeof(TokenId) * (kept.added.capacity() + kept.removed.capacity()) +
              (kept.own ? kept.own->words().size_bytes() : 0);
    slot.store(&kept, std::memory_order_release);
    return kept;
  }

  /// About how much memory states and masks take.
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t asks_before_slice = 3;
  struct Slice {
    std::uint32_t asked = 0;
    std::unique_ptr<const LexemeSlice> slice{};
  };

  // Inside it nearly every schema's texts spend most of their tokens.
  void make_common_slice();
  static std::uint32_t next_number() noexcept;

  // Lexemes are the same when their tables are, whichever grammar made them.
  [[nodiscard]] std::size_t number(const text::DfaPointer& dfa) const;

  const Vocabulary* vocabulary_;
  const core::ByteTrie* trie_;
  const TokenClasses* classes_;
  std::uint32_t number_ = next_number();
  grammar::Automaton automaton_;
  mutable TransitionCache transitions_;

  mutable std::mutex mutex_;  // guards what follows; taken after the automaton's, never before it
  mutable std::unordered_multimap<std::uint64_t, std::pair<text::DfaPointer, std::size_t>> lexemes_;
  mutable std::map<std::tuple<std::size_t, text::Dfa::State, core::ByteTrie::NodeIndex>, Slice>
      slices_;
  mutable std::vector<std::unique_ptr<const MaskEntry>> masks_;
  mutable std::size_t bytes_ = 0;
  mutable std::weak_ptr<StatesRenewal> renewal_;
};

/// The latest states of some grammars, kept for whoever begins a text: constraints hold it.
class StatesRenewal {
 public:
  /// States of the same grammars as others' that take at most so many bytes: the latest, or new
  /// ones where those have grown past it too.
  [[nodiscard]] std::shared_ptr<SharedStates> states(const SharedStates& from,
                                                     std::size_t max_bytes);

 private:
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<SharedStates> latest_;
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/shared_states.ipp>
#endif
