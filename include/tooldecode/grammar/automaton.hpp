/// \file
/// Automaton: runs a Grammar over bytes, determinising it as texts visit it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/grammar/byte_set.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode {

/// A lazily determinised pushdown automaton: its states are plain numbers.
///
/// A position in a text is a stack of grammar frames, a state is an interned set of positions. A
/// state is made when it is first reached, so construction costs what the grammar's size costs, and
/// a bound such as maxLength 10,000 costs nothing until that many characters are written. Every
/// state can be completed: a byte in `allowed` never leads to a dead end.
///
/// \par Shapes      states are numbered from 0; a transition is (state, byte)
/// \par Complexity  a known transition O(1), without a lock; a new one O(positions) and a lock
/// \par Threads     every const member may run concurrently
/// \par Errors      Error{unsatisfiable_schema} where no text matches, Error{limit_exceeded} for
///                  left recursion; both from the constructor
/// \par Source      stacks as positions: Tomita's graph-structured stack; lazy states: Thompson
/// 1968
class Automaton {
 public:
  using State = std::uint32_t;

  /// Where a position stands inside a lexeme, and how many units may still come.
  struct LexemePosition {
    const DfaPointer* dfa = nullptr;
    Dfa::State state      = 0;
    Occurrences remaining{};  ///< units until the lexeme may, and must, end
  };

  /// \param horizon  how many bytes `representative` looks ahead: the longest token
  Automaton(Grammar grammar, NodeId root, std::uint32_t horizon = 128)
      : grammar_(std::move(grammar)), horizon_(horizon), live_(grammar_.satisfiable()) {
    if (!live_[root]) throw Error(Errc::unsatisfiable_schema, "", "no text satisfies the grammar");
    if (is_left_recursive(grammar_)) {
      throw Error(Errc::limit_exceeded, "", "the grammar refers to itself without reading a byte");
    }
    literals_.resize(grammar_.size());
    for (NodeId id = 0; id < grammar_.size(); ++id) {
      if (!grammar_[id].trie.positions.empty()) {
        literals_[id] = LiteralRanges(grammar_[id].trie);
      }
    }
    std::vector<StackId> positions;
    enter(root, 0, positions);
    initial_ = intern(std::move(positions));
  }

  [[nodiscard]] State initial() const noexcept { return initial_; }
  /// The bytes that may follow; each of them leads to a state.
  [[nodiscard]] const ByteSet& allowed(State state) const noexcept {
    return records_[state].allowed;
  }
  /// Whether the text may end here.
  [[nodiscard]] bool is_accepting(State state) const noexcept { return records_[state].accepting; }

  /// The state after a byte, or nothing where the byte is not allowed.
  [[nodiscard]] std::optional<State> step(State state, std::uint8_t byte) const {
    const Record& record = records_[state];
    if (!record.allowed.contains(byte)) return std::nullopt;
    std::atomic<State>& next = record.next[rank(record.allowed, byte)];
    if (const State known = next.load(std::memory_order_acquire); known != unknown) return known;
    const std::lock_guard lock(mutex_);
    std::vector<StackId> positions;
    for (const StackId position : record.positions) {
      if (position != 0) finish(find_move(stacks_[position], byte), positions);
    }
    const State made = intern(std::move(positions));
    next.store(made, std::memory_order_release);
    return made;
  }

  /// A state that is not yet numbered: what a walk over many short texts passes through. Most steps
  /// move one frame and make no state at all.
  class Probe {
   public:
    explicit Probe(State state) : state_(state) {}

   private:
    friend class Automaton;
    explicit Probe(const StackFrame& frame) : frame_(frame) {}
    StackFrame frame_{};  // the only position, where state_ is unknown
    State state_ = unknown;
  };

  [[nodiscard]] Probe probe(State state) const {
    const std::vector<StackId>& positions = records_[state].positions;
    return positions.size() == 1 && positions[0] != 0 ? Probe(stacks_[positions[0]]) : Probe(state);
  }
  /// A set that has every byte that may follow.
  [[nodiscard]] ByteSet candidates(const Probe& probe) const {
    return probe.state_ != unknown ? allowed(probe.state_) : candidates_at(probe.frame_);
  }
  /// Whether some position is at a point of its lexeme that bytes lead back to.
  [[nodiscard]] bool loops(const Probe& probe) const {
    return probe.state_ != unknown ? records_[probe.state_].loops : loops_at(probe.frame_);
  }
  /// The probe after a byte, or nothing where the byte is not allowed.
  [[nodiscard]] std::optional<Probe> step(const Probe& probe, std::uint8_t byte) const {
    if (probe.state_ != unknown) {
      const auto next = step(probe.state_, byte);
      return next ? std::optional(this->probe(*next)) : std::nullopt;
    }
    const Move move = find_move(probe.frame_, byte);
    if (!move.leaves && !move.stays) return std::nullopt;
    if (!move.leaves) return Probe(move.frame);
    const std::lock_guard lock(mutex_);
    std::vector<StackId> positions;
    finish(move, positions);
    return this->probe(intern(std::move(positions)));
  }
  /// The number of a probe's state.
  [[nodiscard]] State settle(const Probe& probe) const {
    if (probe.state_ != unknown) return probe.state_;
    const std::lock_guard lock(mutex_);
    return intern({stacks_.push(probe.frame_)});
  }

  /// A state from which the same texts of at most `horizon` bytes are possible: counters that are
  /// far from their bounds are moved to one value, so that a mask is computed once for all of them.
  [[nodiscard]] State representative(State state) const {
    const Record& record = records_[state];
    if (const State known = record.representative.load(std::memory_order_acquire);
        known != unknown) {
      return known;
    }
    const std::lock_guard lock(mutex_);
    std::vector<StackId> positions;
    for (const StackId position : record.positions) positions.push_back(normalise(position));
    const State made = intern(std::move(positions));
    record.representative.store(made, std::memory_order_release);
    return made;
  }

  /// A pointer per state for the layer above, such as the state's mask; null at first.
  [[nodiscard]] std::atomic<const void*>& attachment(State state) const noexcept {
    return records_[state].attachment;
  }

  /// The positions that make up a state; 0 is the end of the text.
  [[nodiscard]] std::span<const StackId> positions(State state) const noexcept {
    return records_[state].positions;
  }
  /// The state of some positions of a state; nothing where there are none.
  [[nodiscard]] std::optional<State> state_of(std::vector<StackId> positions) const {
    if (positions.empty()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return intern(std::move(positions));
  }
  /// The lexeme that a position is in, if it is in one.
  [[nodiscard]] std::optional<LexemePosition> find_lexeme(StackId position) const {
    if (position == 0) return std::nullopt;
    const StackFrame& top     = stacks_[position];
    const Grammar::Node& node = grammar_[top.node];
    if (node.kind != Grammar::Kind::lexeme) return std::nullopt;
    const Occurrences& units = node.occurrences;
    return LexemePosition{&node.dfa,
                          top.a,
                          {units.min > top.b ? units.min - top.b : 0,
                           units.max == Occurrences::unbounded ? units.max : units.max - top.b}};
  }
  /// The state after the lexeme that a position is in.
  [[nodiscard]] State state_after_lexeme(StackId position) const {
    const std::lock_guard lock(mutex_);
    std::vector<StackId> positions;
    leave(stacks_[position].below, positions);
    return intern(std::move(positions));
  }

  /// The marks (Grammar::tagged) that a state is inside of, innermost first; where positions
  /// disagree, those of the first position.
  [[nodiscard]] std::vector<std::uint32_t> tags(State state) const {
    return tags_at(records_[state].positions.front());
  }
  /// The marks that one of a state's positions is inside of, innermost first.
  [[nodiscard]] std::vector<std::uint32_t> tags_at(StackId position) const {
    std::vector<std::uint32_t> result;
    for (StackId id = position; id != 0; id = stacks_[id].below) {
      const Grammar::Node& node = grammar_[stacks_[id].node];
      if (node.kind == Grammar::Kind::tag) result.push_back(node.tag);
    }
    return result;
  }

  /// States made so far.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return records_.size();
  }
  [[nodiscard]] const Grammar& grammar() const noexcept { return grammar_; }

 private:
  static constexpr State unknown = ~State{0};

  struct Record {
    explicit Record(std::vector<StackId> all) : positions(std::move(all)) {}
    std::vector<StackId> positions;  // ascending
    ByteSet allowed;
    bool accepting = false;
    bool loops     = false;
    std::unique_ptr<std::atomic<State>[]> next;  // [allowed.size()], by rank of the byte
    mutable std::atomic<State> representative{unknown};
    mutable std::atomic<const void*> attachment{nullptr};
  };

  // The literals of a trie in byte order, and the range of them below each position.
  struct LiteralRanges {
    LiteralRanges() = default;
    explicit LiteralRanges(const Grammar::Trie& trie) : below(trie.positions.size()) {
      visit(trie, 0);
    }
    void visit(const Grammar::Trie& trie, std::uint32_t position) {
      below[position].first = static_cast<std::uint32_t>(order.size());
      if (const auto literal = trie.positions[position].literal) order.push_back(*literal);
      for (const std::uint32_t child : trie.positions[position].children) visit(trie, child);
      below[position].second = static_cast<std::uint32_t>(order.size());
    }
    std::vector<std::uint32_t> order;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> below;
  };

  // Frame of a keyed set: `a` is the set of members seen, `b` says what the frame waits for: the
  // rest of a key (its trie position), a member's value, or a separator.
  static constexpr std::uint32_t in_value     = 0x8000'0000;
  static constexpr std::uint32_t in_separator = 0x8000'0001;

  static std::size_t rank(const ByteSet& set, std::uint8_t byte) noexcept {
    if (byte == 0) return 0;
    const ByteSet before = set & ByteSet::range(0, static_cast<std::uint8_t>(byte - 1));
    return static_cast<std::size_t>(before.size());
  }

  // Entering and leaving nodes: every function adds the positions that can consume a byte.

  void enter(NodeId id, StackId below, std::vector<StackId>& out) const {
    if (!live_[id]) return;
    const Grammar::Node& node = grammar_[id];
    switch (node.kind) {
      case Grammar::Kind::nothing:
        return;
      case Grammar::Kind::empty:
        return leave(below, out);
      case Grammar::Kind::literal:
        out.push_back(stacks_.push({id, 0, 0, below}));
        return;
      case Grammar::Kind::sequence:
        return enter_part(id, 0, below, out);
      case Grammar::Kind::choice:
        for (const NodeId child : node.children) enter(child, below, out);
        return;
      case Grammar::Kind::repeat:
        if (node.occurrences.min == 0) leave(below, out);
        return enter_item(id, 0, below, out);
      case Grammar::Kind::lexeme:
        if (node.dfa->accepting(0) && node.occurrences.min == 0) leave(below, out);
        if (!node.dfa->live(0).empty()) out.push_back(stacks_.push({id, 0, 0, below}));
        return;
      case Grammar::Kind::trie:
        if (const auto literal = node.trie.positions[0].literal) {
          enter(node.children[*literal], below, out);
        }
        if (has_more(id, 0, 0)) out.push_back(stacks_.push({id, 0, 0, below}));
        return;
      case Grammar::Kind::keyed_set:
        if (!members_.find_missing(0, node.required)) leave(below, out);
        return enter_member(id, 0, below, out);
      case Grammar::Kind::reference:
        return enter(node.children[0], below, out);
      case Grammar::Kind::tag:
        return enter(node.children[0], stacks_.push({id, 0, 0, below}), out);
    }
  }

  // The last part of a sequence needs no frame: what follows it is what follows the sequence.
  void enter_part(NodeId id, std::uint32_t part, StackId below, std::vector<StackId>& out) const {
    const std::vector<NodeId>& parts = grammar_[id].children;
    if (part + 1 < parts.size()) below = stacks_.push({id, part + 1, 0, below});
    enter(parts[part], below, out);
  }

  // Frame of a repetition: `a` items so far, the current one included; `b` 1 inside a separator.
  void enter_item(NodeId id, std::uint32_t done, StackId below, std::vector<StackId>& out) const {
    const Grammar::Node& node = grammar_[id];
    const std::uint32_t count = counted(node.occurrences, done + 1);
    enter(node.children[0], stacks_.push({id, count, 0, below}), out);
  }

  // A count past an open bound no longer matters.
  static std::uint32_t counted(const Occurrences& bounds, std::uint32_t count) noexcept {
    return bounds.max == Occurrences::unbounded ? std::min(count, bounds.min) : count;
  }

  void enter_member(NodeId id, std::uint32_t seen, StackId below, std::vector<StackId>& out) const {
    const Grammar::Node& node = grammar_[id];
    if (has_more(id, 0, seen)) out.push_back(stacks_.push({id, seen, 0, below}));
    if (!may_add(node, seen)) return;
    if (node.documented_order && !node.children.empty()) {
      seen = members_.with(seen, static_cast<std::uint32_t>(node.children.size()) - 1, true);
    }
    enter(*node.additional, stacks_.push({id, seen, in_value, below}), out);
  }

  [[nodiscard]] bool may_add(const Grammar::Node& node, std::uint32_t seen) const {
    return node.additional && live_[*node.additional] &&
           !members_.find_missing(seen, node.leading) &&
           !(node.documented_order && members_.find_missing(seen, node.required));
  }

  void leave(StackId id, std::vector<StackId>& out) const {
    if (id == 0) {
      out.push_back(0);
      return;
    }
    const StackFrame frame    = stacks_[id];
    const Grammar::Node& node = grammar_[frame.node];
    switch (node.kind) {
      case Grammar::Kind::sequence:
        return enter_part(frame.node, frame.a, frame.below, out);
      case Grammar::Kind::repeat:
        if (frame.b == 1) return enter_item(frame.node, frame.a, frame.below, out);
        if (frame.a >= node.occurrences.min) leave(frame.below, out);
        if (node.occurrences.max == Occurrences::unbounded || frame.a < node.occurrences.max) {
          enter(node.separator, stacks_.push({frame.node, frame.a, 1, frame.below}), out);
        }
        return;
      case Grammar::Kind::keyed_set:
        if (frame.b == in_separator) return enter_member(frame.node, frame.a, frame.below, out);
        if (!members_.find_missing(frame.a, node.required)) leave(frame.below, out);
        if (has_more(frame.node, 0, frame.a) || may_add(node, frame.a)) {
          enter(node.separator, stacks_.push({frame.node, frame.a, in_separator, frame.below}),
                out);
        }
        return;
      default:
        return leave(frame.below, out);  // tag
    }
  }

  // Whether a longer text than the trie position's can still become a literal that is available.
  [[nodiscard]] bool has_more(NodeId id, std::uint32_t position, std::uint32_t seen) const {
    const LiteralRanges& literals = literals_[id];
    auto [first, last]            = literals.below[position];
    if (grammar_[id].trie.positions[position].literal) ++first;
    return std::any_of(literals.order.begin() + first, literals.order.begin() + last,
                       [&](std::uint32_t literal) { return is_available(id, literal, seen); });
  }
  [[nodiscard]] bool is_available(NodeId id, std::uint32_t literal, std::uint32_t seen) const {
    const Grammar::Node& node = grammar_[id];
    if (!live_[node.children[literal]]) return false;
    if (node.kind == Grammar::Kind::trie) return true;
    if (members_.contains(seen, literal)) return false;
    if (const auto next = members_.find_missing(seen, node.leading)) return literal == *next;
    if (!node.documented_order) return true;
    const auto missing = members_.find_missing(seen, node.required);
    return !missing || *missing >= literal;
  }

  // What a byte does to one frame: move it, complete what it stands for, or both.
  struct Move {
    StackFrame frame{};  // where it stays inside its node
    bool stays  = false;
    bool leaves = false;
    std::optional<std::uint32_t> literal{};  // the literal of a trie or keyed set that is complete
  };

  [[nodiscard]] Move find_move(const StackFrame& frame, std::uint8_t byte) const {
    const Grammar::Node& node = grammar_[frame.node];
    Move move{.frame = frame};
    switch (node.kind) {
      case Grammar::Kind::literal:
        if (static_cast<std::uint8_t>(node.text[frame.a]) != byte) break;
        move.leaves  = frame.a + 1 == node.text.size();
        move.stays   = !move.leaves;
        move.frame.a = frame.a + 1;
        break;
      case Grammar::Kind::lexeme: {
        const Dfa& dfa        = *node.dfa;
        const Dfa::State next = dfa.next(frame.a, byte);
        if (next == Dfa::dead || !fits(node, frame, next)) break;
        const bool begins = dfa.boundary(frame.a) && !dfa.closing(next);
        move.stays        = !dfa.live(next).empty();
        move.frame.a      = next;
        move.frame.b      = counted(node.occurrences, frame.b + (begins ? 1 : 0));
        move.leaves =
            dfa.accepting(next) && (dfa.closing(next) || move.frame.b >= node.occurrences.min);
        break;
      }
      case Grammar::Kind::trie:
      case Grammar::Kind::keyed_set: {
        const std::uint32_t child = node.trie.child(frame.b, byte);
        if (child == 0) break;
        move.literal = node.trie.positions[child].literal;
        move.leaves  = move.literal && is_available(frame.node, *move.literal, frame.a);
        move.stays   = has_more(frame.node, child, frame.a);
        move.frame.b = child;
        break;
      }
      default:
        break;
    }
    return move;
  }

  // The positions after a move.
  void finish(const Move& move, std::vector<StackId>& out) const {
    if (move.stays) out.push_back(stacks_.push(move.frame));
    if (!move.leaves) return;
    const Grammar::Node& node = grammar_[move.frame.node];
    if (!move.literal) return leave(move.frame.below, out);
    StackId below = move.frame.below;
    if (node.kind == Grammar::Kind::keyed_set) {
      const std::uint32_t seen = members_.with(move.frame.a, *move.literal, node.documented_order);
      below                    = stacks_.push({move.frame.node, seen, in_value, below});
    }
    enter(node.children[*move.literal], below, out);
  }

  // Whether a lexeme's bounds admit the transition to `next`.
  [[nodiscard]] static bool fits(const Grammar::Node& node, const StackFrame& frame,
                                 Dfa::State next) noexcept {
    if (!node.dfa->boundary(frame.a)) return true;
    return node.dfa->closing(next) ? frame.b >= node.occurrences.min
                                   : frame.b < node.occurrences.max;
  }

  // The bytes that the frame's node could go on with, its counters and members seen aside.
  [[nodiscard]] ByteSet candidates_at(const StackFrame& frame) const {
    const Grammar::Node& node = grammar_[frame.node];
    switch (node.kind) {
      case Grammar::Kind::literal:
        return ByteSet::of({&node.text[frame.a], 1});
      case Grammar::Kind::lexeme:
        return node.dfa->live(frame.a);
      default:
        return node.trie.positions[frame.b].next;
    }
  }
  [[nodiscard]] bool loops_at(const StackFrame& frame) const {
    const Grammar::Node& node = grammar_[frame.node];
    return node.kind == Grammar::Kind::lexeme && node.dfa->loops(frame.a);
  }
  [[nodiscard]] ByteSet allowed_at(const StackFrame& frame) const {
    const ByteSet candidates  = candidates_at(frame);
    const Grammar::Node& node = grammar_[frame.node];
    if (node.kind == Grammar::Kind::literal ||
        (node.kind == Grammar::Kind::lexeme && node.occurrences == Occurrences{})) {
      return candidates;
    }
    ByteSet set;
    candidates.for_each([&](std::uint8_t byte) {
      const Move move = find_move(frame, byte);
      if (move.stays || move.leaves) set.insert(byte);
    });
    return set;
  }

  State intern(std::vector<StackId> positions) const {
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    TOOLDECODE_ASSERT(!positions.empty());
    std::uint64_t hash = positions.size();
    for (const StackId position : positions) hash = hash_combine(hash, position);
    return index_.intern(
        hash, [&](std::uint32_t id) { return records_[id].positions == positions; },
        [&] { return make(std::move(positions)); });
  }

  State make(std::vector<StackId> positions) const {
    const auto id  = static_cast<State>(records_.emplace(std::move(positions)));
    Record& record = records_[id];
    for (const StackId position : record.positions) {
      if (position == 0) {
        record.accepting = true;
      } else {
        record.allowed |= allowed_at(stacks_[position]);
        record.loops = record.loops || loops_at(stacks_[position]);
      }
    }
    const auto count = static_cast<std::size_t>(record.allowed.size());
    record.next      = std::make_unique<std::atomic<State>[]>(count);
    for (std::size_t i = 0; i < count; ++i)
      record.next[i].store(unknown, std::memory_order_relaxed);
    return id;
  }

  // The same stack with every counter that `horizon_` bytes cannot bring to a bound moved to one
  // value. Remembered, and without recursion: a model may nest brackets as deep as it likes.
  StackId normalise(StackId id) const {
    std::vector<StackId> chain;
    for (; id != 0 && (id >= normal_.size() || normal_[id] == 0); id = stacks_[id].below) {
      chain.push_back(id);
    }
    StackId below = id == 0 ? 0 : normal_[id];
    for (; !chain.empty(); chain.pop_back()) {
      StackFrame frame          = stacks_[chain.back()];
      const Grammar::Node& node = grammar_[frame.node];
      frame.below               = below;
      if (node.kind == Grammar::Kind::lexeme) frame.b = far_count(node.occurrences, frame.b);
      if (node.kind == Grammar::Kind::repeat) frame.a = far_count(node.occurrences, frame.a);
      below = stacks_.push(frame);
      if (chain.back() >= normal_.size()) normal_.resize(2 * std::size_t{chain.back()} + 1);
      normal_[chain.back()] = below;
    }
    return below;
  }
  [[nodiscard]] std::uint32_t far_count(const Occurrences& bounds, std::uint32_t count) const {
    if (count < bounds.min) return bounds.min - count > horizon_ ? 0 : count;
    const bool far = bounds.max == Occurrences::unbounded || bounds.max - count > horizon_;
    return far ? bounds.min : count;
  }

  Grammar grammar_;
  std::uint32_t horizon_;
  std::vector<char> live_;               // [nodes]: some text matches
  std::vector<LiteralRanges> literals_;  // [nodes]
  State initial_ = 0;

  mutable std::mutex mutex_;  // guards growth of what follows
  mutable StackPool stacks_;
  mutable MemberSetPool members_;
  mutable StableVector<Record> records_;
  mutable InternIndex index_;
  mutable std::vector<StackId> normal_;  // [stacks], 0 where not yet known
};

}  // namespace tooldecode
