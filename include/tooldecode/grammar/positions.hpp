/// \file
/// Positions: steps positions of a grammar over bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
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

/// Moves positions over bytes. A position is the innermost frame, at a node that reads bytes, above
/// the stack of what follows that node. A byte leads to any number of positions.
///
/// Every position can be completed to a text of the grammar.
///
/// \par Complexity  O(positions made) per byte; the call stack is bounded, because a model may nest
///                  brackets to any depth
/// \par Threads     members that are not const one at a time; the others need no lock
/// \par Errors      as BuildBudget::spend, from members that work
/// \par Source      stacks with shared tails: Tomita's graph-structured stack
class Positions {
 public:
  using Node   = NodeStore::Node;
  using Frames = std::vector<StackFrame>;
  static constexpr StoredId text_end{~std::uint32_t{0}};

  /// \param nodes  the grammars' nodes; other objects may share them
  explicit Positions(std::shared_ptr<NodeStore> nodes = std::make_shared<NodeStore>())
      : shared_nodes_(std::move(nodes)), nodes_(*shared_nodes_) {}

  [[nodiscard]] const std::shared_ptr<NodeStore>& shared_nodes() const noexcept;
  NodeStore& nodes() noexcept { return *shared_nodes_; }
  [[nodiscard]] const NodeStore& nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Begins a step, in which the positions after each stack are added once.
  void begin_step();

  /// Nodes entered and left, positions moved and stacks joined so far: a measure of cost.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_ + stacks_.work(); }
  /// Work from here on is charged to the thread's BuildBudget, by `begin_step` and the members that
  /// do it; earlier work that is not yet charged is not.
  void begin_charging() noexcept { charged_ = work(); }
  /// Charges what is not yet charged.
  void charge();

  void enter(StoredId id, StackId below, Frames& out);

  /// Adds the positions after the node that a stack is inside.
  void leave(StackId id, Frames& out);

  void move(StackFrame frame, std::uint8_t byte, Frames& out);

  /// Sorts the positions from `first` on, removes duplicates, and merges those at one point of a
  /// grammar into one position over all of their stacks. Alternatives that differ only in what
  /// comes later then cost as much as one.
  void merge(Frames& frames, std::size_t first);

  /// The marks around a position, innermost first; if its stacks disagree, those of the first stack
  /// that has any.
  [[nodiscard]] std::vector<std::uint32_t> tags(StackId id) const;

  /// If a byte keeps a position inside its lexeme and leads nowhere else, moves it and returns
  /// true.
  [[nodiscard]] bool move_inside(StackFrame& frame, std::uint8_t byte) const;

  /// A superset of the bytes that may follow.
  [[nodiscard]] text::ByteSet candidates(const StackFrame& frame) const;
  /// The same without optional escapes in keys.
  [[nodiscard]] text::ByteSet plain_candidates(const StackFrame& frame) const;
  /// Whether a lexeme's bounds allow the transition from a position to `next`.
  [[nodiscard]] static bool fits(const Node::Lexeme& lexeme, const StackFrame& frame,
                                 text::Dfa::State next) noexcept;

  [[nodiscard]] const StackSets& stacks() const noexcept { return stacks_; }

  // Frame of a keyed set: `a` is the set of members seen; `b` is what the frame waits for: the rest
  // of a key (its place), a member's value, a separator, or a key of others.
  static constexpr std::uint32_t in_value     = KeyReader::end_of_key_positions;
  static constexpr std::uint32_t in_separator = in_value + 1;
  static constexpr std::uint32_t in_other     = in_value + 2;

  /// Reads the keys of keyed sets; `b` of a position in a key is its place.
  [[nodiscard]] const KeyReader& keys() const noexcept { return keys_; }
  /// Whether a position is in a keyed set's key, outside the lexemes of its others.
  [[nodiscard]] bool is_in_key(const StackFrame& frame) const;
  /// Whether a position is in a lexeme of a keyed set's others.
  [[nodiscard]] bool is_in_other_key(const StackFrame& frame) const;
  /// The position inside the lexeme of others[other], in a state of it.
  [[nodiscard]] StackFrame in_other_key(const StackFrame& frame, std::size_t other,
                                        text::Dfa::State state);

  /// What follows a key of a keyed set's others, of whose lexeme a position is given.
  struct OtherValue {
    StoredId value;
    StackId behind;  ///< the stack that `leave` leaves after the value
  };
  [[nodiscard]] OtherValue value_of_other_key(const StackFrame& key);

  /// The position with every counter that `horizon` bytes cannot bring to a bound set to one value.
  /// Cached, and without call recursion, because a model may nest brackets to any depth.
  [[nodiscard]] StackFrame normal(StackFrame frame, std::uint32_t horizon);

  /// Converts stacks of another object over the same nodes. Converts each stack once in its
  /// lifetime.
  class Adoption {
   public:
    Adoption(Positions& to, const Positions& from) : to_(to), from_(from) {}

    [[nodiscard]] StackFrame operator()(StackFrame frame);

   private:
    // Converts a frame whose stack is known.
    StackFrame inner(StackFrame frame);
    StackId stack(StackId root);

    Positions& to_;
    const Positions& from_;
    std::unordered_map<StackId, StackId> known_{{empty_stack, empty_stack}};
  };

 private:
  static constexpr std::uint64_t steps_of_work = 4;
  // Rare enough that the check costs nothing measurable.
  static constexpr std::uint64_t work_between_charges = 1'024;
  static constexpr std::uint32_t max_depth            = 100;  // of calls

  // A step may visit any number of nodes, so each visit checks whether to charge.
  void count_visit();
  // What `enter` and `leave` do, at once; where calls are nested deeply, they leave it to `finish`.
  void enter_now(StoredId id, StackId below, Frames& out);
  void leave_now(StackId id, Frames& out);
  void finish(Frames& out);

  // The last part of a sequence needs no frame: what follows it is what follows the sequence.
  void enter_part(StoredId id, const Node::Sequence& all, std::uint32_t part, StackId below,
                  Frames& out);

  // Frame of a repetition: `a` is the number of items including the current one; `b` is 1 in a
  // separator.
  void enter_item(StoredId id, const Node::Repeat& repeat, CountSets::Counts done, StackId below,
                  Frames& out);

  [[nodiscard]] bool has_key(const Node::Members& set, SeenId seen) const;
  void enter_member(StoredId id, const Node::Members& set, SeenId seen, StackId below, Frames& out);
  OtherValue value_of_other(const StackFrame& frame, const Node::Members& set, std::size_t other,
                            std::uint32_t key);
  void enter_other(const StackFrame& frame, const Node::Members& set, std::size_t other,
                   std::uint32_t key, Frames& out);
  void move_key(const Node::Members& set, const StackFrame& frame, std::uint8_t byte, Frames& out);
  void move_lexeme(const Node::Lexeme& lexeme, StackFrame frame, std::uint8_t byte, Frames& out);
  static void count_unit(const Node::Lexeme& lexeme, StackFrame& frame,
                         text::Dfa::State next) noexcept;
  // Saturates a count at an open bound.
  static std::uint32_t counted(const text::Occurrences& bounds, std::uint32_t count) noexcept;

  // One stack for those of some positions; flattens their bundles.
  StackId bundled(const Frames& frames, std::size_t first, std::size_t last);

  std::shared_ptr<NodeStore> shared_nodes_;
  const NodeStore& nodes_;
  StackSets stacks_{nodes_};
  KeyReader keys_{nodes_};
  KeyReader::Steps key_steps_;
  std::vector<std::uint64_t> left_;  // [stacks] last step in which it was left
  std::uint64_t step_ = 1, work_ = 0, charged_ = 0;
  struct Later {
    StoredId node;  // text_end: the stack is left
    StackId stack;
  };
  std::vector<Later> later_;
  std::uint32_t depth_ = 0;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/positions.ipp>
#endif
