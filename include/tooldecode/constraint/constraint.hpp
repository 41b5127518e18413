/// \file
/// Constraint: turns a Grammar into a token mask for each step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/prepare_options.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace mask {
struct MaskEntry;
class SharedStates;
class StatesReset;
}  // namespace mask
namespace grammar {
class Automaton;
}  // namespace grammar

/// Keeps a text inside a grammar: `Constraint c{index, Grammar::regex("[ab]+")}`.
///
/// A token is allowed if the automaton can read all of its bytes; an end token is allowed if the
/// text may end. States, and masks that were computed, are cached in memory that is shared with
/// copies and with every other constraint of the VocabularyIndex. It grows with the states that
/// texts visit. For many texts, take a copy for each text and call `reset` on it, as Decoder does;
/// for a text of millions of tokens, call `compact`. Memory then stays within the index's budget
/// plus what the texts in progress need.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  advance O(1) for a cached transition, else O(bytes of the token); copying a
///                  cached mask O(V / 32); computing a new one see MaskBuilder
/// \par Threads     const members may run concurrently, without a lock for cached states; states
///                  are values; call `reset` and `compact` from one thread per object, whatever its
///                  copies do
/// \par Errors      from the constructor, as Automaton, under the limits in the grammar's options;
///                  Error{invalid_option} for a grammar without a root; Error{unknown_state} for a
///                  state of other memory; Error{limit_exceeded} for a mask, a token or a
///                  jump-forward string that exceeds the index's `mask_limits`; the object is then
///                  unchanged
class Constraint {
 public:
  /// A state of the automaton, or the finished state after an end token.
  struct State {
    std::uint32_t id     = 0;
    std::uint32_t memory = 0;  ///< its owner, see
                               ///< SharedStates::number
    friend bool operator==(const State&, const State&) = default;
  };

  struct Refusal {
    std::size_t at = 0;      ///< byte offset; the text's length if only its end is missing
    bool too_short = false;  ///< all bytes are allowed, but the text cannot end here
  };

  /// \param grammar  is copied in; it need not outlive the constructor
  Constraint(VocabularyIndex index, const Grammar& grammar);
  /// Uses states that other constraints share, such as those of a ToolLibrary.
  Constraint(VocabularyIndex index, std::shared_ptr<mask::SharedStates> states,
             const Grammar& grammar);

  /// Call it before a new text: if the memory has grown past the index's budget, switches to new
  /// memory, or to that of another copy that was reset. Earlier states are then unknown to this
  /// object; copies made before still know them.
  void reset();
  [[deprecated("use reset")]] void renew() { reset(); }
  /// Switches to new memory during texts and moves what the `live` states need there; each of them
  /// is replaced by its equal in the new memory.
  void compact(std::span<State> live);
  /// Memory kept for states and masks, which grows, without the cache of transitions, which does
  /// not.
  [[nodiscard]] std::size_t bytes() const;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary().size(); }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return index_.vocabulary(); }
  [[nodiscard]] const VocabularyIndex& vocabulary_index() const noexcept { return index_; }
  [[nodiscard]] const grammar::Automaton& automaton() const noexcept;
  /// The automaton's node for a whole text.
  [[nodiscard]] grammar::StoredId root() const noexcept { return root_; }

  [[nodiscard]] State initial() const noexcept { return initial_; }

  /// The state after a token; nullopt if the token is not allowed.
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const;
  /// The state after some bytes; nullopt if one of them is not allowed.
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const;

  /// The first place where a whole text breaks the constraint; nullopt if it conforms.
  [[nodiscard]] std::optional<Refusal> find_refusal(std::string_view text) const;

  /// Writes the allowed tokens: exactly those that `advance` accepts.
  ///
  /// Errors: Error{invalid_option} where `words` is not of ceil(V / 32) words.
  void fill_mask(State state, MaskView words) const;
  /// The same where the words hold the mask of `shown`, a state of this constraint or of another
  /// one: writes what differs, often a few words, and all of them if `shown` is of other memory,
  /// such as State{}.
  void update_mask(State shown, State state, MaskView words) const;

  /// Computes masks that texts after a state are likely to need, to call on an idle thread while a
  /// prompt is read, say. Returns how many it made. Other threads do not wait for it; see
  /// prepare_masks.
  std::size_t prepare(State state, const PrepareOptions& options = {}) const;

  /// Whether the text may end here, so that an end token is allowed.
  [[nodiscard]] bool is_accepting(State state) const;
  [[nodiscard]] bool is_finished(State state) const noexcept { return state == finished; }

  /// The state's number in the automaton; requires a state that is not finished.
  [[nodiscard]] std::uint32_t automaton_state(State state) const;

  /// The jump-forward string, 256 bytes at most. It ignores control tokens that may follow, because
  /// the text of their names may follow too.
  [[nodiscard]] std::string jump_forward(State state) const;
  [[deprecated("use jump_forward")]] std::string forced(State state) const {
    return jump_forward(state);
  }

 private:
  static constexpr State finished{~std::uint32_t{0}, 0};

  [[nodiscard]] State state(std::uint32_t id) const noexcept;
  [[nodiscard]] const mask::MaskEntry& entry(State state) const;
  void require_words(MaskView words) const;
  void use(std::shared_ptr<mask::SharedStates> states);
  static grammar::StoredId compile(mask::SharedStates& states, const Grammar& grammar);

  VocabularyIndex index_;
  std::shared_ptr<mask::SharedStates> states_;
  grammar::StoredId root_;
  State initial_;
  std::shared_ptr<mask::StatesReset> renewal_;
};
static_assert(ConstraintPolicy<Constraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/constraint.ipp>
#endif
