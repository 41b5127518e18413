/// \file
/// Constraint: a Grammar as a mask of tokens at each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace constraint {
class SharedStates;
class StatesRenewal;
}  // namespace constraint
namespace grammar {
class Automaton;
}  // namespace grammar

/// Decides which tokens keep a text inside a grammar: `Constraint c{index, Grammar::regex("[ab]+")}`.
///
/// A token is allowed where the automaton can read all of its bytes; an end token where the text
/// may end. States, and masks once they were asked for, are kept in memory that is shared with
/// copies and with every other constraint of the VocabularyIndex. It grows with what texts visit;
/// who makes many of them takes a copy for each and renews that, as Decoder does, and who makes one
/// of millions of tokens compacts: then no more is kept than the cache's budget, and what texts in
/// progress need.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(1) where it was done before, else O(bytes of the token); a known mask
///                  O(V / 32) to copy out; a new one see MaskBuilder
/// \par Threads     every const member may run concurrently, those of states met before without a
///                  lock; states are values; `renew` and `compact` of one object alone, whatever
///                  its copies do
/// \par Errors      as Automaton, from the constructor, with the limits of the options that made the
///                  grammar; Error{invalid_option} for a grammar without a root; Error{unknown_state} for a state of other
///                  memory; Error{limit_exceeded} for a mask, a token or a jump-forward string that
///                  takes more than the index's `mask_limits`, after which the object is as before
class Constraint {
 public:
  /// A state of the automaton, or the finished state after an end token.
  struct State {
    std::uint32_t id                                   = 0;  ///< as grammar::Automaton numbers it
    std::uint32_t memory                               = 0;  ///< whose, see SharedStates::number
    friend bool operator==(const State&, const State&) = default;
  };

  /// \param grammar  its nodes are taken in: it need not outlive the constructor
  Constraint(VocabularyIndex cache, const Grammar& grammar);
  /// Among states that others share already, such as those of a ToolLibrary.
  Constraint(VocabularyIndex cache, std::shared_ptr<constraint::SharedStates> states,
             const Grammar& grammar);

  /// Begins a new text: where the memory has grown past the cache's budget, takes other memory, new
  /// or another renewed copy's. States from before are then unknown to this object, while copies
  /// made before still know them.
  void renew();
  /// Takes new memory in the midst of texts and puts into it what some states need; each of them is
  /// replaced by its equal there.
  void compact(std::span<State> live);
  /// About how much memory is kept for states and masks.
  [[nodiscard]] std::size_t bytes() const;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary().size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return cache_.vocabulary(); }
  [[nodiscard]] const VocabularyIndex& vocabulary_index() const noexcept { return cache_; }
  [[nodiscard]] const grammar::Automaton& automaton() const noexcept;
  /// What whole texts match, among the automaton's nodes.
  [[nodiscard]] grammar::StoredId root() const noexcept { return root_; }

  [[nodiscard]] State initial() const noexcept { return initial_; }

  /// The state after a token, or nothing where the token is not allowed.
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const;
  /// The state after some bytes, or nothing where one of them is not allowed.
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const;

  /// Writes the allowed tokens: exactly those that `advance` accepts.
  ///
  /// Errors: Error{invalid_option} where `words` is not of ceil(V / 32) words.
  void fill_mask(State state, MaskView words) const;

  /// Whether the text may end here; an end token is then allowed.
  [[nodiscard]] bool is_accepting(State state) const;
  [[nodiscard]] bool is_finished(State state) const noexcept { return state == finished; }

  /// A state's number in the automaton; requires one that is not finished.
  [[nodiscard]] std::uint32_t automaton_state(State state) const;

  /// The bytes that every continuation's text begins with, 256 at most. Control tokens are passed
  /// over: what they open, their names' text opens too.
  [[nodiscard]] std::string forced(State state) const;

 private:
  static constexpr State finished{~std::uint32_t{0}, 0};

  [[nodiscard]] State state(std::uint32_t id) const noexcept;
  void use(std::shared_ptr<constraint::SharedStates> states);
  static grammar::StoredId compile(constraint::SharedStates& states, const Grammar& grammar);

  VocabularyIndex cache_;
  std::shared_ptr<constraint::SharedStates> states_;
  grammar::StoredId root_;
  State initial_;
  std::shared_ptr<constraint::StatesRenewal> renewal_;
};
static_assert(ConstraintPolicy<Constraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/constraint.ipp>
#endif
