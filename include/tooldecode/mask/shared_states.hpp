/// \file
/// SharedStates: states, transitions and masks shared by constraints over one vocabulary.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/core/wanted_mutex.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/mask/lexeme_slice.hpp>
#include <tooldecode/mask/token_classes.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/transition_cache.hpp>
#include <tooldecode/mask/whitespace_runs.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::mask {

/// The allowed tokens of a state: those of `base`, if there is one, minus `removed`, plus `added`.
struct MaskEntry {
  const TokenMask* base = nullptr;
  std::unique_ptr<const TokenMask> own{};  ///< owns `base` unless a slice does
  std::vector<TokenId> removed{};
  std::vector<TokenId> added{};  ///< in any order, perhaps twice

  void fill(MaskView words) const noexcept;
  /// The same where the words are those of `shown`: writes what differs.
  void update(const MaskEntry& shown, MaskView words) const noexcept;
};

/// Tokens that go past the end of a slice's lexeme.
using PastTokens = std::vector<CountedToken>;

/// What a value allows of the tokens that go past the end of a slice's lexeme, whatever follows the
/// value.
struct PastInValue {
  PastTokens tokens;                            ///< which the value reads, with more of it to come
  std::vector<core::ByteTrie::NodeIndex> ends;  ///< nodes of `past` at which the value may end
};

class StatesReset;

/// An automaton with the masks of its states, shared by constraints: what one request has computed
/// is ready for the next, whatever its schema.
///
/// It only grows. To bound memory, start a new one, either empty (VocabularyIndex) or with the same
/// grammars (StatesReset); constraints keep the old one alive as long as they use it.
///
/// \par Complexity  a slice costs about as much as one mask without it
/// \par Threads     every member may run concurrently
class SharedStates {
 public:
  SharedStates(const Vocabulary& vocabulary, const core::ByteTrie& trie,
               const TokenClasses& classes);
  /// The same grammars without states and masks.
  explicit SharedStates(const SharedStates& from);
  SharedStates& operator=(const SharedStates&) = delete;
  ~SharedStates()                              = default;

  [[nodiscard]] std::shared_ptr<StatesReset> renewal() const;

  /// Unique id of this object; never 0.
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return *vocabulary_; }
  [[nodiscard]] const core::ByteTrie& trie() const noexcept { return *trie_; }
  /// Tells whether a thread waits for the lock of the states.
  [[nodiscard]] const core::Waiters& waiters() const noexcept { return automaton_.waiters(); }
  [[nodiscard]] const TokenClasses& classes() const noexcept { return *classes_; }
  [[nodiscard]] grammar::Automaton& automaton() noexcept { return automaton_; }
  [[nodiscard]] const grammar::Automaton& automaton() const noexcept { return automaton_; }
  [[nodiscard]] TransitionCache& transitions() const noexcept { return transitions_; }

  /// What the tokens below `node` do to a lexeme in `state`. Null for the first requests for a state
  /// of a lexeme with many: a slice only pays off if several masks use it.
  [[nodiscard]] const LexemeSlice* slice(const text::DfaPointer& dfa, text::Dfa::State state,
                                         core::ByteTrie::NodeIndex node) const;

  [[nodiscard]] const LexemeSlice& ready_slice(const text::DfaPointer& dfa, text::Dfa::State state,
                                               core::ByteTrie::NodeIndex node) const;

  /// The tokens at or below a node of the trie, ascending; kept from the first call on.
  [[nodiscard]] const std::vector<TokenId>& tokens_below(core::ByteTrie::NodeIndex node) const;

  /// Those of a slice's `past_end` that the positions `after` the lexeme accept; null until
  /// `keep_past` was called, once, by who holds the automaton's lock.
  [[nodiscard]] const PastTokens* find_past(const LexemeSlice& slice,
                                            std::span<const grammar::StackFrame> after) const;
  const PastTokens& keep_past(const LexemeSlice& slice, std::span<const grammar::StackFrame> after,
                              PastTokens tokens) const;

  /// The same of a value alone: objects of many grammars have the same value behind unknown keys.
  [[nodiscard]] const PastInValue* find_past(const LexemeSlice& slice,
                                             grammar::StoredId value) const;
  const PastInValue& keep_past(const LexemeSlice& slice, grammar::StoredId value,
                               PastInValue past) const;

  /// The mask of a state, computed by `make()` on first use.
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
    bytes_ += core::heap_bytes(sizeof kept) + core::heap_bytes(kept.added) +
              core::heap_bytes(kept.removed) +
              (kept.own ? core::heap_bytes(sizeof *kept.own) + kept.own->bytes() : 0);
    slot.store(&kept, std::memory_order_release);
    return kept;
  }

  /// Memory of the states and masks, without the grammars' nodes, which other states may share, and
  /// without the cache of transitions, which does not grow.
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t asks_before_slice = 3;
  static constexpr std::size_t ready_slices        = 8;  // per lexeme and node, at first requests
  static constexpr std::size_t compared_slices     = 4;
  struct MadeSlice {
    LexemeSlice slice;
    std::size_t counted = 0;  // bytes of the slice when it was last asked for; its masks are lazy
  };
  struct Slice {
    text::Dfa::State state;
    std::uint32_t asked    = 0;
    std::uint32_t compared = 0;  // how many slices there were when it was last compared with some
    MadeSlice* made        = nullptr;  // of this state, or of one from which tokens do the same
  };
  // A lexeme at one node of the trie. Where its states differ from token to token, as those of a
  // pattern that counts words, none is asked for often. So a slice, which may serve others, is also
  // made for the first few, and for the 3rd, 6th, 12th, ... request that no slice serves.
  struct Slices {
    std::vector<Slice> by_state{};  // ascending
    std::vector<std::unique_ptr<MadeSlice>> made{};
    std::uint32_t asked = 0, next = asks_before_slice;

    [[nodiscard]] Slice& operator[](text::Dfa::State state);
    [[nodiscard]] std::size_t bytes() const {
      return core::heap_bytes(by_state) + core::heap_bytes(made);
    }
  };
  struct Past {
    const LexemeSlice* slice;
    std::vector<grammar::StackFrame> after;
    PastTokens tokens;
  };

  // The slice of JSON strings, in which most tokens of nearly every schema's texts are.
  void make_common_slice();
  static std::uint32_t next_number() noexcept;

  // The slice that stands for a state, if one is there or is to be made now.
  MadeSlice* find_slice(Slices& known, Slice& of_state, const text::Dfa& dfa,
                        text::Dfa::State state, core::ByteTrie::NodeIndex node) const;

  // Many slices of keys share what is behind them.
  static std::uint64_t past_hash(const LexemeSlice& slice,
                                 std::span<const grammar::StackFrame> after) noexcept {
    return grammar::hash_of(after) + std::hash<const void*>{}(&slice);
  }

  // Equal tables are the same lexeme, whichever grammar made them.
  [[nodiscard]] std::size_t number(const text::DfaPointer& dfa) const;

  const Vocabulary* vocabulary_;
  const core::ByteTrie* trie_;
  const TokenClasses* classes_;
  std::uint32_t number_ = next_number();
  grammar::Automaton automaton_;
  mutable TransitionCache transitions_;

  // Guards the following; taken after the automaton's, never before it.
  mutable core::WantedMutex mutex_{automaton_.waiters()};
  mutable std::unordered_multimap<std::uint64_t, std::pair<text::DfaPointer, std::size_t>> lexemes_;
  mutable std::map<std::pair<std::size_t, core::ByteTrie::NodeIndex>, Slices> slices_;
  mutable std::unordered_multimap<std::uint64_t, Past> past_;  // by past_hash
  mutable std::map<std::pair<const LexemeSlice*, grammar::StoredId>, PastInValue> past_in_value_;
  mutable std::unordered_map<core::ByteTrie::NodeIndex, std::vector<TokenId>> below_;
  mutable std::vector<std::unique_ptr<const MaskEntry>> masks_;
  mutable std::size_t bytes_ = 0;
  mutable std::weak_ptr<StatesReset> renewal_;
};

/// The latest states of some grammars, for texts that begin; constraints hold it.
class StatesReset {
 public:
  /// States for the grammars of `from` that take at most `max_bytes`: the latest, or new ones if
  /// those have grown past it.
  [[nodiscard]] std::shared_ptr<SharedStates> states(const SharedStates& from,
                                                     std::size_t max_bytes);

 private:
  std::mutex mutex_;  // guards the following
  std::shared_ptr<SharedStates> latest_;
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/shared_states.ipp>
#endif
