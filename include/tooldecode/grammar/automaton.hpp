/// \file
/// Automaton: runs grammars over bytes and makes deterministic states as texts visit them.
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

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/core/wanted_mutex.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/grammar/text_lengths.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::grammar {

/// A lazily determinized pushdown automaton for any number of grammars; a state is a number.
///
/// A state is an interned set of positions, made when a text first reaches it. So construction
/// costs only the size of the grammar, and a bound such as maxLength 10,000 costs nothing until
/// that many characters are written. Every state can be completed: a byte in `allowed` never leads
/// to a dead end. Grammars with common parts share states.
///
/// \par Shapes      states are numbered from 0; a transition is (state, byte)
/// \par Complexity  `add` O(size of the grammar); a byte O(positions)
/// \par Threads     every member may run concurrently; making states takes one lock, reading them
///                  and importing grammars none
/// \par Errors      from `add` and the constructor, Error{unsatisfiable_schema} if no text matches,
///                  Error{limit_exceeded} for left recursion
/// \par Source      lazy states: Thompson 1968
class Automaton {
 public:
  using State = std::uint32_t;

  /// \param horizon  how many bytes `representative` looks ahead; use the longest token
  explicit Automaton(std::uint32_t horizon = 128) : horizon_(horizon) {}
  Automaton(const Grammar& grammar, NodeId root, std::uint32_t horizon = 128);
  explicit Automaton(const Grammar& grammar) : Automaton(grammar, grammar.root()) {}

  /// An automaton of the same grammars without states.
  explicit Automaton(std::shared_ptr<NodeStore> nodes, std::uint32_t horizon)
      : horizon_(horizon), positions_(std::move(nodes)) {}

  /// Adds a grammar; returns the state at the start of its texts.
  State add(const Grammar& grammar, NodeId root) { return begin(compile(grammar, root)); }
  /// Imports a grammar and returns its number, for `begin`, and for Grammar::linked in later
  /// grammars if none of its texts is empty.
  StoredId compile(const Grammar& grammar, NodeId root);
  /// The state at the start of the texts of a compiled grammar.
  State begin(StoredId node);
  /// The state here that equals a state of another automaton over the same nodes.
  State adopt(const Automaton& from, State state);

  [[nodiscard]] State initial() const noexcept { return initial_; }
  [[nodiscard]] bool is_accepting(State state) const noexcept { return records_[state].accepting; }
  /// The positions of a state, ascending.
  [[nodiscard]] std::span<const StackFrame> positions(State state) const noexcept;

  /// The bytes that may follow; each leads to a state.
  [[nodiscard]] text::ByteSet allowed(State state) const { return Cursor(*this).allowed(state); }
  [[nodiscard]] std::optional<State> step(State state, std::uint8_t byte) const;
  [[nodiscard]] std::optional<State> advance(State state, std::string_view bytes) const;

  /// Follows texts from a state without interning the states on the way. Holds the automaton's
  /// lock, so keep it short-lived. What it does is charged to the thread's BuildBudget.
  class Cursor {
   public:
    struct Span {
      std::uint32_t first = 0, last = 0;
      [[nodiscard]] bool empty() const noexcept { return first == last; }
    };

    explicit Cursor(const Automaton& automaton);

    [[nodiscard]] Span begin(State state);
    [[nodiscard]] Span begin(const StackFrame& frame);
    [[nodiscard]] Span begin(const std::vector<StackFrame>& frames);
    /// The positions after the lexemes that `frames` are in.
    [[nodiscard]] Span after(const std::vector<StackFrame>& frames);
    /// The positions at the begin of a node that nothing follows.
    [[nodiscard]] Span enter(StoredId node);
    /// The positions after the key of a keyed set's others that `key` is in, up to which `after`
    /// leads as well: those of its value, and behind that.
    [[nodiscard]] Positions::OtherValue value_of_other_key(const StackFrame& key) {
      return automaton_.positions_.value_of_other_key(key);
    }
    /// The positions after a byte; empty if the byte is not allowed.
    [[nodiscard]] Span step(Span place, std::uint8_t byte);
    /// Frees a place and all later ones.
    void drop(Span place) { frames_.resize(place.first); }

    [[nodiscard]] std::span<const StackFrame> positions(Span place) const;
    /// A superset of the bytes that may follow.
    [[nodiscard]] text::ByteSet candidates(Span place) const;
    [[nodiscard]] std::uint64_t work() const { return automaton_.positions_.work(); }
    [[nodiscard]] State settle(Span place) { return automaton_.intern(positions(place)); }
    [[nodiscard]] std::optional<State> advance(Span place, std::string_view bytes);
    [[nodiscard]] text::ByteSet allowed(State state);
    /// The byte that must follow, apart from the bytes in `passed_over` and from optional escapes
    /// in keys; nullopt if several bytes may follow or the text may end.
    [[nodiscard]] std::optional<std::uint8_t> only_byte(Span place,
                                                        const text::ByteSet& passed_over);
    [[nodiscard]] bool move_inside(StackFrame& frame, std::uint8_t byte) const;
    [[nodiscard]] TextLengths& lengths() { return automaton_.lengths_; }
    [[nodiscard]] StackFrame in_other_key(const StackFrame& frame, std::size_t other,
                                          text::Dfa::State state);

   private:
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(frames_.size()); }
    Span distinct(std::uint32_t first);

    const Automaton& automaton_;
    std::lock_guard<core::WantedMutex> lock_;
    Positions::Frames& frames_;
  };

  /// A state with the same texts of at most `horizon` bytes: counters far from their bounds are set
  /// to one value, so that all such states share a mask.
  [[nodiscard]] State representative(State state) const;

  /// A pointer per state for the layer above, such as the state's mask; initially null.
  [[nodiscard]] std::atomic<const void*>& attachment(State state) const noexcept;

  /// Tells whether a thread waits for the lock; the layer above may share it.
  [[nodiscard]] core::Waiters& waiters() const noexcept { return waiters_; }

  [[nodiscard]] const NodeStore& nodes() const noexcept { return positions_.nodes(); }
  [[nodiscard]] const std::shared_ptr<NodeStore>& shared_nodes() const noexcept;
  /// Reads the keys of keyed sets; requires the lock.
  [[nodiscard]] const KeyReader& keys() const noexcept { return positions_.keys(); }
  /// Whether a position is in a key that its keyed set does not name.
  [[nodiscard]] bool is_in_other_key(const StackFrame& frame) const;

  /// The marks (Grammar::tagged) around a state, innermost first; if positions disagree, those of
  /// the first position.
  [[nodiscard]] std::vector<std::uint32_t> tags(State state) const;
  /// The marks around one position of a state, innermost first.
  [[nodiscard]] std::vector<std::uint32_t> tags_at(const StackFrame& position) const;

  [[nodiscard]] std::size_t size() const;
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

  // The state of some positions, after merging them.
  State intern(std::span<const StackFrame> frames) const;

  std::uint32_t horizon_;
  State initial_ = 0;

  mutable core::Waiters waiters_;
  mutable core::WantedMutex mutex_{waiters_};  // guards growth of the following
  mutable Positions positions_;
  mutable TextLengths lengths_{positions_};
  mutable core::StableVector<Record> records_;
  mutable core::InternIndex index_;
  mutable std::size_t frame_bytes_ = 0;
  mutable Positions::Frames scratch_;  // memory of a Cursor
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/automaton.ipp>
#endif
