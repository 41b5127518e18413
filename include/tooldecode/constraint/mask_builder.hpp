/// \file
/// MaskBuilder: finds the tokens that may follow a state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <tooldecode/constraint/joint_walk.hpp>
#include <tooldecode/constraint/lexeme_slice.hpp>
#include <tooldecode/constraint/mask_parts.hpp>
#include <tooldecode/constraint/shared_states.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::constraint {

/// Walks the vocabulary's trie in step with the automaton, once, for one state.
///
/// Where a walk would stay inside one lexeme for many tokens, a slice that is ready for the lexeme
/// stands for it; only what comes after the lexeme's end is walked. Inside a key that need not be
/// one of the schema's, the tokens that spell one of those are walked and set apart from the
/// slice's.
///
/// Positions are followed one by one, which visits a trie node once for each way to read it; where
/// that turns out to be many, a JointWalk takes over.
///
/// \par Shapes      masks over V tokens
/// \par Complexity  O(trie nodes that the automaton can reach outside slices); see JointWalk
/// \par Threads     holds the automaton's lock while it lives
/// \par Errors      Error{limit_exceeded, cancelled}, see BuildBudget: nothing is kept of the mask
/// \par Source      Willard and Louf, arXiv:2307.09702, section 4, without its precomputed index
class MaskBuilder {
 public:
  MaskBuilder(const SharedStates& states, std::size_t vocabulary_size);

  [[nodiscard]] MaskEntry build(grammar::Automaton::State state);

 private:
  using Span      = grammar::Automaton::Cursor::Span;
  using NodeIndex = core::ByteTrie::NodeIndex;

  // Tokens seldom reach through so many lexemes, unless a text can be cut into them in many ways:
  // so much is then done for positions one by one before all of them are walked together.
  static constexpr std::size_t many_lexemes           = 3;
  static constexpr std::uint64_t max_work             = 5'000;
  static constexpr std::size_t visits_between_charges = 256;  // of the trie, a step each
  // Below so few tokens a walk costs less than a slice.
  static constexpr std::uint32_t sliced_subtree = 48;
  // Inside strings and free text.
  static bool is_sliced(const text::Dfa& dfa, text::Dfa::State state) noexcept;

  // The tokens below a trie node that may follow. Positions are taken one by one, since what one of
  // them allows is allowed; those inside lexemes need no walk of the automaton.
  void collect(Span place, NodeIndex node);

  [[nodiscard]] bool is_ambiguous() const;
  // Follows tokens past the end of a lexeme.
  template <class Follow>
  void behind_lexeme(const Follow& follow) {
    if (++lexemes_ended_ == many_lexemes) deep_since_ = walk_.work();
    follow();
    if (lexemes_ended_-- == many_lexemes) deep_work_ += walk_.work() - deep_since_;
  }

  void walk(Span place, NodeIndex node);

  [[nodiscard]] const grammar::NodeStore::Node* node_of(const grammar::StackFrame& frame) const;
  [[nodiscard]] bool is_lexeme(const grammar::StackFrame& frame) const;
  [[nodiscard]] bool is_sliced_key(const grammar::StackFrame& frame) const;
  [[nodiscard]] const grammar::KeyReader& keys() const noexcept;
  [[nodiscard]] const text::Dfa& lexeme_of(const grammar::NodeStore::Node& set,
                                           std::size_t k) const;

  // Positions at one point of one lexeme differ only in what comes after it.
  void collect_lexemes(std::vector<grammar::StackFrame>& frames, NodeIndex node, bool is_large);
  // The units that a lexeme may still have.
  [[nodiscard]] std::uint32_t units_left(const grammar::StackFrame& frame) const;
  // Whether anything may follow the lexemes that positions are in.
  [[nodiscard]] bool goes_on(const std::vector<grammar::StackFrame>& group);

  // Steps through a lexeme alone, and through the automaton from where the lexeme may end.
  void walk_lexeme(const std::vector<grammar::StackFrame>& group, NodeIndex root);

  // Tokens of a class that have more units than the lexeme may have may yet reach past its end.
  void add_too_long(const std::vector<grammar::StackFrame>& group,
                    const TokenClasses::Taken& plain);
  // Whether a token may follow.
  [[nodiscard]] bool reads(Span place, TokenId token);

  void collect_slice(const std::vector<grammar::StackFrame>& group, const LexemeSlice& slice);
  template <class Fits>
  void walk_past(const LexemeSlice& slice, const Fits& fits, Span place, NodeIndex node) {
    const core::ByteTrie& past     = slice.past();
    const text::ByteSet candidates = walk_.candidates(place);
    const auto [first, last]       = past.children(node);
    for (auto child = first; child < last; ++child) {
      if (!candidates.contains(past.label(child))) continue;
      const Span next = walk_.step(place, past.label(child));
      if (!next.empty()) {
        for (const std::uint32_t index : past.values(child)) {
          const LexemeSlice::Closing& token = slice.past_end()[index];
          if (fits(token)) parts_.add(token.token);
        }
        walk_past(slice, fits, next, child);
      }
      walk_.drop(next);
    }
  }

  // Keys of sets that take others than their members: what spells a member's key, or one that may
  // not be repeated, is walked, and what is then no other's key is kept out of the slices. Sets
  // that differ only in what comes after are walked as one.
  void collect_keys(const std::vector<grammar::StackFrame>& frames, NodeIndex node);
  // Where it matters which key is written, what reaches past its end is read token by token.
  void collect_tracked(const grammar::StackFrame& frame, const text::DfaPointer& dfa,
                       text::Dfa::State state, NodeIndex node);
  // What stays inside such a key is told by its lexeme alone: a walk would make a position of each
  // text, once for each lexeme at each byte.
  void walk_tracked(Span place, const text::Dfa& dfa, text::Dfa::State state, NodeIndex root);
  // A walk of the automaton alone.
  void walk_exactly(Span place, NodeIndex node);
  using Nodes = std::vector<NodeIndex>;
  // Positions behind keys of members, by the trie's nodes.
  using Behind = std::map<NodeIndex, std::vector<grammar::StackFrame>>;
  // Follows the keys that others cannot have, in every spelling, and lists for each of the others
  // all nodes from which none of its keys can be completed.
  void walk_key(Span place, NodeIndex node, Behind& behind, std::vector<Nodes>& apart);
  void set_apart(NodeIndex node);
  [[nodiscard]] bool is_apart(TokenId token) const;
  // A walk of another member's key that no slice serves.
  template <class WalkKeys>
  void walk_apart(const WalkKeys& walk_keys) {
    MaskParts outer = std::exchange(parts_, MaskParts(vocabulary_size_));
    auto apart      = std::exchange(apart_, {});
    walk_keys();
    apart_ = std::move(apart);
    std::swap(parts_, outer);
    parts_.add(std::move(outer), apart_);
  }

  void add_base(const TokenMask& mask, std::size_t count, std::vector<TokenId> removed);

  const SharedStates& states_;
  const core::ByteTrie& trie_;
  grammar::Automaton::Cursor walk_;
  std::size_t vocabulary_size_;
  MaskParts parts_{vocabulary_size_};
  std::vector<TokenId> apart_;     // sorted: they spell a member's key
  std::size_t lexemes_ended_ = 0;  // on the way to the node at hand
  std::uint64_t deep_work_   = 0;  // behind many of them
  std::uint64_t deep_since_  = 0;
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/mask_builder.ipp>
#endif
