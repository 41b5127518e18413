/// \file
/// Automaton: runs grammars over bytes, determinising them as texts visit them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/grammar/text_lengths.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::grammar {

/// A lazily determinised pushdown automaton of any number of grammars: its states are plain
/// numbers.
///
/// A state is an interned set of positions. It is made when it is first reached, so construction
/// costs what the grammar's size costs, and a bound such as maxLength 10,000 costs nothing until
/// that many characters are written. Every state can be completed: a byte in `allowed` never leads
/// to a dead end. Grammars that have parts in common have states in common.
///
/// \par Shapes      states are numbered from 0; a transition is (state, byte)
/// \par Complexity  `add` O(size of the grammar); a byte O(positions)
/// \par Threads     every member may run concurrently; making states takes one lock, reading none;
///                  grammars are taken in without it
/// \par Errors      Error{unsatisfiable_schema} where no text matches, Error{limit_exceeded} for
///                  left recursion; both from `add` and the constructor
/// \par Source      lazy states: Thompson 1968
class Automaton {
 public:
  using State = std::uint32_t;

  /// \param horizon  how many bytes `representative` looks ahead: the longest token
  explicit Automaton(std::uint32_t horizon = 128) : horizon_(horizon) {}
  /// The automaton of one grammar.
  Automaton(const Grammar& grammar, NodeId root, std::uint32_t horizon = 128);
  explicit Automaton(const Grammar& grammar) : Automaton(grammar, grammar.root()) {}

  /// An automaton of the same grammars without any state.
  explicit Automaton(std::shared_ptr<NodeStore> nodes, std::uint32_t horizon)
      : horizon_(horizon), positions_(std::move(nodes)) {}

  /// Takes one more grammar in and gives the state at the beginning of its texts.
  State add(const Grammar& grammar, NodeId root) { return begin(compile(grammar, root)); }
  /// Takes a grammar in and gives its number: for `begin`, and where no text of it is empty for
  /// Grammar::linked in later grammars.
  StoredId compile(const Grammar& grammar, NodeId root);
  /// The state at the beginning of the texts of a grammar that was taken in.
  State begin(StoredId node);
  /// The state here that another automaton of the same nodes has under a number.
  State adopt(const Automaton& from, State state);

  /// The first grammar's beginning.
  [[nodiscard]] State initial() const noexcept { return initial_; }
  /// Whether the text may end here.
  [[nodiscard]] bool is_accepting(State state) const noexcept { return records_[state].accepting; }
  /// The positions that make up a state, ascending.
  [[nodiscard]] std::span<const StackFrame> positions(State state) const noexcept;

  /// The bytes that may follow; each of them leads to a state.
  [[nodiscard]] text::ByteSet allowed(State state) const { return Cursor(*this).allowed(state); }
  /// The state after a byte, or nothing where the byte is not allowed.
  [[nodiscard]] std::optional<State> step(State state, std::uint8_t byte) const;
  /// The state after some bytes, or nothing where one of them is not allowed.
  [[nodiscard]] std::optional<State> advance(State state, std::string_view bytes) const;

  /// Follows texts from a state without numbering what it passes through. It holds the automaton's
  /// lock, so it is short-lived. `step` charges the thread's BuildBudget for what was done.
  class Cursor {
   public:
    /// Positions, in the walk's own memory.
    struct Span {
      std::uint32_t first = 0, last = 0;
      [[nodiscard]] bool empty() const noexcept { return first == last; }
    };

    explicit Cursor(const Automaton& automaton);

    [[nodiscard]] Span begin(State state);
    [[nodiscard]] Span begin(const StackFrame& frame);
    [[nodiscard]] Span begin(const std::vector<StackFrame>& frames);
    /// Behind the lexemes that positions are in.
    [[nodiscard]] Span after(const std::vector<StackFrame>& frames);
    /// Where a byte leads; empty where it may not follow.
    [[nodiscard]] Span step(Span place, std::uint8_t byte);
    /// Forgets a place and all later ones.
    void drop(Span place) { frames_.resize(place.first); }

    [[nodiscard]] std::span<const StackFrame> positions(Span place) const;
    /// A set that has every byte that may follow.
    [[nodiscard]] text::ByteSet candidates(Span place) const;
    /// What the automaton has done so far, see Positions::work.
    [[nodiscard]] std::uint64_t work() const { return automaton_.positions_.work(); }
    [[nodiscard]] State settle(Span place) { return automaton_.intern(positions(place)); }
    [[nodiscard]] std::optional<State> advance(Span place, std::string_view bytes);
    [[nodiscard]] text::ByteSet allowed(State state);
    /// The byte that must follow, some bytes passed over, and escapes in keys that need none;
    /// nothing where several may, or the text may end.
    [[nodiscard]] std::optional<std::uint8_t> only_byte(Span place,
                                                        const text::ByteSet& passed_over);
    /// Moves a position that a byte keeps inside its lexeme, see Positions.
    [[nodiscard]] bool move_inside(StackFrame& frame, std::uint8_t byte) const;
    /// How many bytes it takes to complete positions.
    [[nodiscard]] TextLengths& lengths() { return automaton_.lengths_; }
    /// The position inside another member's key, see Positions.
    [[nodiscard]] StackFrame in_other_key(const StackFrame& frame, std::size_t other,
                                          text::Dfa::State state);

   private:
    // Looked at so seldom, the budget costs nothing that can be measured.
    static constexpr std::uint64_t work_between_charges = 1'024;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(frames_.size()); }
    Span distinct(std::uint32_t first);
    void charge();

    const Automaton& automaton_;
    std::lock_guard<std::mutex> lock_;
    Positions::Frames& frames_;
    std::uint64_t charged_;  // of `work`
  };

  /// A state from which the same texts of at most `horizon` bytes are possible: counters that are
  /// far from their bounds are moved to one value, so that a mask is computed once for all of them.
  [[nodiscard]] State representative(State state) const;

  /// A pointer per state for the layer above, such as the state's mask; null at first.
  [[nodiscard]] std::atomic<const void*>& attachment(State state) const noexcept;

  [[nodiscard]] const NodeStore& nodes() const noexcept { return positions_.nodes(); }
  [[nodiscard]] const std::shared_ptr<NodeStore>& shared_nodes() const noexcept;
  /// What reads keys, where a position is in the key of a keyed set; the lock must be held.
  [[nodiscard]] const KeyReader& keys() const noexcept { return positions_.keys(); }
  /// Whether a position is in the key of a keyed set that it does not name.
  [[nodiscard]] bool is_in_other_key(const StackFrame& frame) const;

  /// The marks (Grammar::tagged) that a state is inside of, innermost first; where positions
  /// disagree, those of the first position.
  [[nodiscard]] std::vector<std::uint32_t> tags(State state) const;
  /// The marks that one of a state's positions is inside of, innermost first.
  [[nodiscard]] std::vector<std::uint32_t> tags_at(const StackFrame& position) const;

  /// States made so far.
  [[nodiscard]] std::size_t size() const;
  /// About how much memory all of this takes, without the nodes.
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr State unknown = ~State{0};

  struct Record {
    explicit Record(std::span<const StackFrame> all);
    Positions::Frames frames;
    bool accepting;
    mutable std::atomic<State> representative{unknown};
    mutable std::atomic<const void*> attachment{nullptr};
  };

  // The state of some positions, which are merged.
  State intern(std::span<const StackFrame> frames) const;

  std::uint32_t horizon_;
  State initial_ = 0;

  mutable std::mutex mutex_;  // guards growth of what follows
  mutable Positions positions_;
  mutable TextLengths lengths_{positions_};
  mutable core::StableVector<Record> records_;
  mutable core::InternIndex index_;
  mutable std::size_t frames_ = 0;     // of all records
  mutable Positions::Frames scratch_;  // a walk's memory
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/automaton.ipp>
#endif
