/// \file
/// GrammarConstraint: any Grammar as a constraint over the tokens of a vocabulary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/mask_cache.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode {

/// Decides which tokens keep a text inside a grammar.
///
/// A token is allowed where the automaton can read all of its bytes; an end token where the text
/// may end. Masks are made when first asked for, from one walk of the vocabulary's trie in step
/// with the automaton, and kept: small ones as lists of tokens, the others as a shared mask and a
/// list.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(bytes of the token); a known mask O(V / 32) to copy out; a new one
///                  O(trie nodes that the automaton can reach)
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      as Automaton, from the constructor
/// \par Source      Willard and Louf, arXiv:2307.09702, section 4, without its precomputed index
class GrammarConstraint {
 public:
  /// A state of the automaton, or the finished state after an end token.
  struct State {
    Automaton::State id                                = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  GrammarConstraint(MaskCache cache, Grammar grammar, NodeId root)
      : cache_(std::move(cache)),
        automaton_(std::move(grammar), root, static_cast<std::uint32_t>(cache_.trie().longest())) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary().size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return cache_.vocabulary(); }
  [[nodiscard]] const MaskCache& mask_cache() const noexcept { return cache_; }
  [[nodiscard]] const Automaton& automaton() const noexcept { return automaton_; }

  [[nodiscard]] State initial() const noexcept { return {automaton_.initial()}; }

  /// The state after a token, or nothing where the token is not allowed.
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    if (vocabulary().is_end(token)) {
      return is_accepting(state) ? std::optional(finished) : std::nullopt;
    }
    if (state == finished || !vocabulary().is_text(token)) return std::nullopt;
    const std::string_view bytes = vocabulary().bytes(token);
    if (bytes.empty()) return std::nullopt;
    return advance_bytes(state, bytes);
  }
  /// The state after some bytes, or nothing where one of them is not allowed.
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const {
    if (state == finished) return bytes.empty() ? std::optional(state) : std::nullopt;
    auto probe = automaton_.probe(state.id);
    for (const char c : bytes) {
      const auto next = automaton_.step(probe, static_cast<std::uint8_t>(c));
      if (!next) return std::nullopt;
      probe = *next;
    }
    return State{automaton_.settle(probe)};
  }

  /// Writes the allowed tokens: exactly those that `advance` accepts.
  void fill_mask(State state, MaskWords words) const {
    if (state != finished) {
      const Entry& entry = find_entry(automaton_.representative(state.id));
      if (entry.base != nullptr) {
        std::copy_n(entry.base->words().begin(), words.size(), words.begin());
      } else {
        std::fill(words.begin(), words.end(), 0);
      }
      for (const TokenId token : entry.extra) insert(words, token);
    } else {
      std::fill(words.begin(), words.end(), 0);
    }
    if (is_accepting(state)) {
      for (const TokenId token : vocabulary().end_tokens()) insert(words, token);
    }
  }

  /// Whether the text may end here; an end token is then allowed.
  [[nodiscard]] bool is_accepting(State state) const noexcept {
    return state == finished || automaton_.is_accepting(state.id);
  }
  [[nodiscard]] bool is_finished(State state) const noexcept { return state == finished; }

  /// The bytes that every continuation begins with, 256 at most.
  [[nodiscard]] std::string forced(State state) const {
    std::string bytes;
    while (bytes.size() < 256 && !is_accepting(state) && automaton_.allowed(state.id).size() == 1) {
      const std::uint8_t byte = automaton_.allowed(state.id).front();
      bytes.push_back(static_cast<char>(byte));
      state.id = *automaton_.step(state.id, byte);
    }
    return bytes;
  }

 private:
  static constexpr State finished{~Automaton::State{0}};
  // Where a walk of the trie would stay inside one lexeme for many tokens, a slice pays: inside
  // strings and free text, and in the small lexemes that all grammars share (white space, digits).
  static constexpr std::uint32_t sliced_subtree = 48;
  static bool is_sliced(const Automaton::LexemePosition& lexeme) noexcept {
    const Dfa& dfa = **lexeme.dfa;
    return dfa.loops(lexeme.state) && (dfa.size() <= 16 || dfa.live(lexeme.state).size() >= 64);
  }

  // The allowed tokens: `base`, if any, and `extra`.
  struct Entry {
    const TokenMask* base = nullptr;
    std::unique_ptr<TokenMask> own;
    std::vector<TokenId> extra;
  };
  struct Collected {
    std::vector<const TokenMask*> bases;
    std::vector<TokenId> tokens;
  };

  static void insert(MaskWords words, TokenId token) noexcept {
    const auto t = static_cast<std::size_t>(token);
    words[t / 32] |= std::uint32_t{1} << (t % 32);
  }

  const Entry& find_entry(Automaton::State state) const {
    std::atomic<const void*>& slot = automaton_.attachment(state);
    if (const void* known = slot.load(std::memory_order_acquire)) {
      return *static_cast<const Entry*>(known);
    }
    Collected collected;
    collect(automaton_.probe(state), 0, collected);
    auto entry = std::make_unique<Entry>(compress(std::move(collected)));
    const std::lock_guard lock(mutex_);
    if (const void* known = slot.load(std::memory_order_acquire)) {
      return *static_cast<const Entry*>(known);
    }
    const Entry& kept = *entries_.emplace_back(std::move(entry));
    slot.store(&kept, std::memory_order_release);
    return kept;
  }

  // A list where it is the smaller form, else one mask.
  [[nodiscard]] Entry compress(Collected collected) const {
    const std::size_t short_list = mask_words(vocabulary_size()) / 4;
    Entry entry;
    if (collected.bases.size() <= 1 && collected.tokens.size() <= short_list) {
      if (!collected.bases.empty()) entry.base = collected.bases[0];
      entry.extra = std::move(collected.tokens);
      return entry;
    }
    entry.own = std::make_unique<TokenMask>(vocabulary_size());
    for (const TokenMask* base : collected.bases) *entry.own |= *base;
    for (const TokenId token : collected.tokens) entry.own->insert(token);
    entry.base = entry.own.get();
    return entry;
  }

  // The tokens below a trie node that may follow.
  void collect(const Automaton::Probe& probe, VocabularyTrie::NodeIndex node,
               Collected& out) const {
    if (cache_.trie().count_below(node) < sliced_subtree || !automaton_.loops(probe)) {
      return walk(probe, node, out);
    }
    const Automaton::State state = automaton_.settle(probe);
    std::vector<StackId> rest;
    for (const StackId position : automaton_.positions(state)) {
      const auto lexeme = automaton_.find_lexeme(position);
      if (!lexeme || !is_sliced(*lexeme)) {
        rest.push_back(position);
        continue;
      }
      collect_slice(cache_.slice(*lexeme->dfa, lexeme->state, node), lexeme->remaining, position,
                    out);
    }
    if (rest.size() == automaton_.positions(state).size()) return walk(probe, node, out);
    if (const auto other = automaton_.state_of(std::move(rest))) {
      walk(automaton_.probe(*other), node, out);
    }
  }

  void walk(const Automaton::Probe& probe, VocabularyTrie::NodeIndex node, Collected& out) const {
    const VocabularyTrie& trie = cache_.trie();
    const ByteSet candidates   = automaton_.candidates(probe);
    const auto [first, last]   = trie.children(node);
    for (auto child = first; child < last; ++child) {
      if (!candidates.contains(trie.label(child))) continue;
      const auto next = automaton_.step(probe, trie.label(child));
      if (!next) continue;
      for (const std::uint32_t token : trie.values(child)) {
        out.tokens.push_back(static_cast<TokenId>(token));
      }
      const auto [below, end] = trie.children(child);
      if (below != end) collect(*next, child, out);
    }
  }

  void collect_slice(const LexemeSlice& slice, const Occurrences& units, StackId position,
                     Collected& out) const {
    const TokenMask& staying = slice.staying(units.max);
    out.bases.push_back(&staying);
    const auto fits = [&](const LexemeSlice::Closing& token) {
      return token.units >= units.min && token.units <= units.max;
    };
    for (const LexemeSlice::Closing& token : slice.closing()) {
      if (fits(token)) out.tokens.push_back(token.token);
    }
    if (slice.past().size() == 1) return;
    const Automaton::State after = automaton_.state_after_lexeme(position);
    walk_past(slice, fits, automaton_.probe(after), 0, out);
  }

  template <class Fits>
  void walk_past(const LexemeSlice& slice, const Fits& fits, const Automaton::Probe& probe,
                 VocabularyTrie::NodeIndex node, Collected& out) const {
    const VocabularyTrie& trie = slice.past();
    const ByteSet candidates   = automaton_.candidates(probe);
    const auto [first, last]   = trie.children(node);
    for (auto child = first; child < last; ++child) {
      if (!candidates.contains(trie.label(child))) continue;
      const auto next = automaton_.step(probe, trie.label(child));
      if (!next) continue;
      for (const std::uint32_t index : trie.values(child)) {
        const LexemeSlice::Closing& token = slice.past_end()[index];
        if (fits(token)) out.tokens.push_back(token.token);
      }
      walk_past(slice, fits, *next, child, out);
    }
  }

  MaskCache cache_;
  Automaton automaton_;
  mutable std::mutex mutex_;  // guards growth of entries_
  mutable std::vector<std::unique_ptr<const Entry>> entries_;
};
static_assert(Constraint<GrammarConstraint>);

}  // namespace tooldecode
