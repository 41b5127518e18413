/// \file
/// Positions: what a byte does to a place in a grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/grammar/count_sets.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/members_seen.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stack_sets.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::grammar {

/// Moves positions over bytes. A position is the innermost frame, at a node that reads bytes, with
/// the stack of what comes after that node below it; a byte leads to any number of positions.
///
/// Every position can be completed to a text of the grammar.
///
/// \par Complexity  O(positions made) per byte
/// \par Threads     members that are not const one at a time; the others need no lock
/// \par Source      stacks that share their tails: Tomita's graph-structured stack
class Positions {
 public:
  using Frames = std::vector<StackFrame>;
  /// The node of the position at the end of the text.
  static constexpr StoredId text_end{~std::uint32_t{0}};

  /// \param nodes  of the grammars; other objects may share them
  explicit Positions(std::shared_ptr<NodeStore> nodes = std::make_shared<NodeStore>())
      : shared_nodes_(std::move(nodes)), nodes_(*shared_nodes_) {}

  [[nodiscard]] const std::shared_ptr<NodeStore>& shared_nodes() const noexcept;
  NodeStore& nodes() noexcept { return *shared_nodes_; }
  [[nodiscard]] const NodeStore& nodes() const noexcept { return nodes_; }
  /// About how much memory all of this takes, without the nodes.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Begins a step: what follows a stack is added once in each.
  void begin_step() noexcept { ++step_; }

  /// How many nodes have been entered and left, and positions moved: what all of it has cost.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

  /// Adds the positions at the beginning of a node.
  void enter(StoredId id, StackId below, Frames& out);

  /// Adds the positions behind what a stack is inside of.
  void leave(StackId id, Frames& out);

  /// Adds the positions that a byte leads to; none where it may not follow.
  void move(StackFrame frame, std::uint8_t byte, Frames& out);

  /// Makes the positions from `first` on distinct, those at one point of a grammar one position
  /// over all of their stacks, and sorts them: alternatives that differ only in what comes later
  /// cost what one of them costs.
  void merge(Frames& frames, std::size_t first);

  /// The marks around a position, innermost first; where its stacks disagree, those of the first
  /// stack that has some.
  [[nodiscard]] std::vector<std::uint32_t> tags(StackId id) const;

  /// Where a byte keeps a position inside a lexeme, and nothing else follows, moves the position
  /// and gives true.
  [[nodiscard]] bool move_inside(StackFrame& frame, std::uint8_t byte) const;

  /// A set that has every byte that may follow.
  [[nodiscard]] text::ByteSet candidates(const StackFrame& frame) const;
  /// The same, where keys are not escaped but for what must be.
  [[nodiscard]] text::ByteSet plain_candidates(const StackFrame& frame) const;

  /// What positions have below them.
  [[nodiscard]] const StackSets& stacks() const noexcept { return stacks_; }

  // Frame of a keyed set: `a` is the set of members seen, `b` says what the frame waits for: the
  // rest of a key (its place there), a member's value, a separator, or another member's key.
  static constexpr std::uint32_t in_value     = KeyReader::end_of_key_positions;
  static constexpr std::uint32_t in_separator = in_value + 1;
  static constexpr std::uint32_t in_other     = in_value + 2;

  /// What reads the keys of keyed sets: `b` of a position in a key is its place.
  [[nodiscard]] const KeyReader& keys() const noexcept { return keys_; }
  /// Whether a position is in the key of a keyed set, and not in a lexeme of its others.
  [[nodiscard]] bool is_in_key(const StackFrame& frame) const;
  /// Whether a position is in a lexeme of a keyed set's others.
  [[nodiscard]] bool is_in_other_key(const StackFrame& frame) const;
  /// The position inside the lexeme of another member's key, in one of its states.
  [[nodiscard]] StackFrame in_other_key(const StackFrame& frame, std::size_t other,
                                        text::Dfa::State state);

  /// The same position with every counter that `horizon` bytes cannot bring to a bound moved to one
  /// value. Remembered, and without recursion: a model may nest brackets as deep as it likes.
  [[nodiscard]] StackFrame normal(StackFrame frame, std::uint32_t horizon);

  /// Another object's stacks, here: both have the same nodes. Each is taken over once in an
  /// object's life.
  class Adoption {
   public:
    Adoption(Positions& to, const Positions& from) : to_(to), from_(from) {}

    /// A position of the other object.
    [[nodiscard]] StackFrame operator()(StackFrame frame);

   private:
    // A frame whose stack is known already.
    StackFrame inner(StackFrame frame);
    StackId stack(StackId root);

    Positions& to_;
    const Positions& from_;
    std::unordered_map<StackId, StackId> known_{{empty_stack, empty_stack}};
  };

 private:
  using Kind = Grammar::Kind;

  // The last part of a sequence needs no frame: what follows it is what follows the sequence.
  void enter_part(StoredId id, std::uint32_t part, StackId below, Frames& out);

  // Frame of a repetition: `a` items so far, the current one included; `b` 1 inside a separator.
  void enter_item(StoredId id, CountSets::Counts done, StackId below, Frames& out);

  [[nodiscard]] bool has_key(const NodeStore::Node& node, SeenId seen) const;
  void enter_member(StoredId id, SeenId seen, StackId below, Frames& out);
  void enter_other(const StackFrame& frame, std::size_t other, std::uint32_t key, Frames& out);

  void move_key(const NodeStore::Node& node, const StackFrame& frame, std::uint8_t byte,
                Frames& out);

  void move_lexeme(const NodeStore::Node& node, StackFrame frame, std::uint8_t byte, Frames& out);
  // Whether a lexeme's bounds admit the transition to `next`.
  [[nodiscard]] static bool fits(const NodeStore::Node& node, const StackFrame& frame,
                                 text::Dfa::State next) noexcept;
  static void count_unit(const NodeStore::Node& node, StackFrame& frame,
                         text::Dfa::State next) noexcept;
  // A count past an open bound no longer matters.
  static std::uint32_t counted(const text::Occurrences& bounds, std::uint32_t count) noexcept;

  // One stack for those of some positions, whose own bundles are opened.
  StackId bundled(const Frames& frames, std::size_t first, std::size_t last);

  std::shared_ptr<NodeStore> shared_nodes_;
  const NodeStore& nodes_;
  StackSets stacks_{nodes_};
  KeyReader keys_{nodes_};
  KeyReader::Steps key_steps_;       // a step's memory
  std::vector<std::uint64_t> left_;  // [stacks] the step that last left it
  std::uint64_t step_ = 1, work_ = 0;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/positions.ipp>
#endif
