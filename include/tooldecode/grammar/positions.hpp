/// \file
/// Positions: what a byte does to a place in a grammar.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
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

  [[nodiscard]] const std::shared_ptr<NodeStore>& shared_nodes() const noexcept {
    return shared_nodes_;
  }
  NodeStore& nodes() noexcept { return *shared_nodes_; }
  [[nodiscard]] const NodeStore& nodes() const noexcept { return nodes_; }
  /// About how much memory all of this takes, without the nodes.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return stacks_.bytes() + keys_.bytes() + sizeof(std::uint64_t) * left_.capacity();
  }

  /// Begins a step: what follows a stack is added once in each.
  void begin_step() noexcept { ++step_; }

  /// How many nodes have been entered and left, and positions moved: what all of it has cost.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

  /// Adds the positions at the beginning of a node.
  void enter(StoredId id, StackId below, Frames& out) {
    ++work_;
    const NodeStore::Node& node = nodes_[id];
    switch (node.kind) {
      case Kind::nothing:
      case Kind::linked:
        return;
      case Kind::empty:
        return leave(below, out);
      case Kind::literal:
      case Kind::trie:
        out.push_back({id, 0, 0, below});
        return;
      case Kind::lexeme:
        if (node.dfa->accepting(0) && node.occurrences.min == 0) leave(below, out);
        if (!node.dfa->live(0).empty()) out.push_back({id, 0, 0, below});
        return;
      case Kind::sequence:
        return enter_part(id, 0, below, out);
      case Kind::choice:
        for (const StoredId child : node.children) enter(child, below, out);
        return;
      case Kind::repeat:
        if (node.occurrences.min == 0) leave(below, out);
        return enter_item(id, 0, below, out);
      case Kind::keyed_set:
        if (keys_.seen().is_complete(node, SeenId{})) leave(below, out);
        return enter_member(id, SeenId{}, below, out);
      case Kind::reference:
        return enter(node.children[0], below, out);
      case Kind::tag:
        return enter(node.children[0], stacks_.push({id, 0, 0, below}), out);
    }
  }

  /// Adds the positions behind what a stack is inside of.
  void leave(StackId id, Frames& out) {
    ++work_;
    if (id == empty_stack) {
      out.push_back({text_end, 0, 0, empty_stack});
      return;
    }
    if (id.index() >= left_.size()) left_.resize(2 * id.index() + 1);
    if (left_[id.index()] == step_) return;
    left_[id.index()]      = step_;
    const StackFrame frame = stacks_[id];
    if (frame.node == StackSets::bundle) {
      for (const StackId one : stacks_.united_ones(frame)) leave(one, out);
      return;
    }
    const NodeStore::Node& node = nodes_[frame.node];
    switch (node.kind) {
      case Kind::sequence:
        return enter_part(frame.node, frame.part(), frame.below, out);
      case Kind::repeat:
        if (frame.stage() == 1) return enter_item(frame.node, frame.counts(), frame.below, out);
        if (stacks_.counts().may_end(frame.counts(), node.occurrences)) leave(frame.below, out);
        if (stacks_.counts().may_go_on(frame.counts(), node.occurrences)) {
          enter(node.separator, stacks_.push({frame.node, frame.counts(), 1, frame.below}), out);
        }
        return;
      case Kind::keyed_set:
        if (frame.stage() == in_separator)
          return enter_member(frame.node, frame.seen(), frame.below, out);
        if (frame.stage() >= in_other) return enter_other(frame, frame.stage() - in_other, 0, out);
        if (keys_.seen().is_complete(node, frame.seen())) leave(frame.below, out);
        if (has_key(node, frame.seen())) {
          enter(node.separator,
                stacks_.push({frame.node, frame.seen().number(), in_separator, frame.below}), out);
        }
        return;
      default:
        return leave(frame.below, out);  // tag
    }
  }

  /// Adds the positions that a byte leads to; none where it may not follow.
  void move(StackFrame frame, std::uint8_t byte, Frames& out) {
    ++work_;
    if (frame.node == text_end) return;
    const NodeStore::Node& node = nodes_[frame.node];
    switch (node.kind) {
      case Kind::literal:
        if (static_cast<std::uint8_t>(node.text[frame.offset()]) != byte) return;
        if (++frame.a == node.text.size()) return leave(frame.below, out);
        out.push_back(frame);
        return;
      case Kind::lexeme:
        return move_lexeme(node, frame, byte, out);
      case Kind::trie: {
        const auto child = node.literals->find_child(frame.trie_node(), byte);
        if (child == 0) return;
        const auto literal       = node.literals->values(child);
        const auto [first, last] = node.literals->children(child);
        if (first != last) out.push_back({frame.node, 0, child, frame.below});
        if (!literal.empty()) enter(node.children[literal.front()], frame.below, out);
        return;
      }
      case Kind::keyed_set:
        return move_key(node, frame, byte, out);
      default:
        return;
    }
  }

  /// Makes the positions from `first` on distinct, those at one point of a grammar one position
  /// over all of their stacks, and sorts them: alternatives that differ only in what comes later
  /// cost what one of them costs.
  void merge(Frames& frames, std::size_t first) {
    if (frames.size() - first < 2) return;
    const auto begin = frames.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, frames.end());
    frames.erase(std::unique(begin, frames.end()), frames.end());
    const auto alike = [](const StackFrame& a, const StackFrame& b) { return a.is_beside(b); };
    std::size_t kept = first;
    for (std::size_t i = first, end; i < frames.size(); i = end) {
      for (end = i + 1; end < frames.size() && alike(frames[i], frames[end]);) ++end;
      StackFrame one = frames[i];
      if (end - i > 1) one.below = bundled(frames, i, end);
      frames[kept++] = one;
    }
    frames.resize(kept);
  }

  /// The marks around a position, innermost first; where its stacks disagree, those of the first
  /// stack that has some.
  [[nodiscard]] std::vector<std::uint32_t> tags(StackId id) const {
    std::vector<std::uint32_t> result;
    while (id != empty_stack) {
      const StackFrame& frame = stacks_[id];
      if (frame.node == StackSets::bundle) {
        for (const StackId one : stacks_.ones(frame)) {
          const auto more = tags(one);
          if (more.empty()) continue;
          result.insert(result.end(), more.begin(), more.end());
          break;
        }
        return result;
      }
      if (nodes_[frame.node].kind == Kind::tag) result.push_back(nodes_[frame.node].tag);
      id = frame.below;
    }
    return result;
  }

  /// Where a byte keeps a position inside a lexeme, and nothing else follows, moves the position
  /// and gives true.
  [[nodiscard]] bool move_inside(StackFrame& frame, std::uint8_t byte) const {
    if (frame.node == text_end) return false;
    const NodeStore::Node& node = nodes_[frame.node];
    if (node.kind != Kind::lexeme) return false;
    const text::Dfa::State next = node.dfa->next(frame.dfa_state(), byte);
    if (next == text::Dfa::dead || !fits(node, frame, next) || node.dfa->accepting(next))
      return false;
    count_unit(node, frame, next);
    return true;
  }

  /// A set that has every byte that may follow.
  [[nodiscard]] text::ByteSet candidates(const StackFrame& frame) const {
    if (frame.node == text_end) return {};
    const NodeStore::Node& node = nodes_[frame.node];
    if (node.kind == Kind::literal) return text::ByteSet::of({&node.text[frame.offset()], 1});
    if (node.kind == Kind::lexeme) return node.dfa->live(frame.dfa_state());
    if (node.kind == Kind::keyed_set) return keys_.candidates(node, frame.key());
    text::ByteSet set;
    const auto [first, last] = node.literals->children(frame.trie_node());
    for (auto child = first; child < last; ++child) set.insert(node.literals->label(child));
    return set;
  }
  /// The same, where keys are not escaped but for what must be.
  [[nodiscard]] text::ByteSet plain_candidates(const StackFrame& frame) const {
    if (!is_in_key(frame)) return candidates(frame);
    return keys_.plain_candidates(nodes_[frame.node], frame.key());
  }

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
  [[nodiscard]] bool is_in_key(const StackFrame& frame) const {
    return frame.node != text_end && nodes_[frame.node].kind == Kind::keyed_set;
  }
  /// Whether a position is in a lexeme of a keyed set's others.
  [[nodiscard]] bool is_in_other_key(const StackFrame& frame) const {
    if (frame.node == text_end || frame.below == empty_stack) return false;
    StackFrame outer = stacks_[frame.below];
    if (outer.node == StackSets::bundle) outer = stacks_[stacks_.ones(outer).back()];
    return outer.node != StackSets::bundle && nodes_[outer.node].kind == Kind::keyed_set &&
           outer.stage() >= in_other;
  }
  /// The position inside the lexeme of another member's key, in one of its states.
  [[nodiscard]] StackFrame in_other_key(const StackFrame& frame, std::size_t other,
                                        text::Dfa::State state) {
    const auto place = static_cast<std::uint32_t>(in_other + other);
    return {nodes_[frame.node].others[other].key, state, 0,
            stacks_.push({frame.node, frame.seen().number(), place, frame.below})};
  }

  /// The same position with every counter that `horizon` bytes cannot bring to a bound moved to one
  /// value. Remembered, and without recursion: a model may nest brackets as deep as it likes.
  [[nodiscard]] StackFrame normal(StackFrame frame, std::uint32_t horizon) {
    if (frame.node == text_end) return frame;
    const NodeStore::Node& node = nodes_[frame.node];
    if (node.kind == Kind::lexeme) {
      frame.b = CountSets::far_count(node.occurrences, frame.units(), horizon);
    }
    frame.below = stacks_.normal(frame.below, horizon);
    return frame;
  }

  /// Another object's stacks, here: both have the same nodes. Each is taken over once in an
  /// object's life.
  class Adoption {
   public:
    Adoption(Positions& to, const Positions& from) : to_(to), from_(from) {}

    /// A position of the other object.
    [[nodiscard]] StackFrame operator()(StackFrame frame) {
      if (frame.node == text_end) return frame;
      frame.below = stack(frame.below);
      return inner(frame);
    }

   private:
    // A frame whose stack is known already.
    StackFrame inner(StackFrame frame) {
      const Kind kind = to_.nodes_[frame.node].kind;
      if (kind == Kind::keyed_set) {
        frame.a = to_.keys_.adopt(from_.keys_, to_.nodes_[frame.node], frame.seen()).number();
        if (frame.key() < KeyReader::end_of_key_positions)
          frame.b = to_.keys_.adopt(from_.keys_, frame.key());
      }
      if (kind == Kind::repeat)
        frame.a = to_.stacks_.counts().adopt(from_.stacks_.counts(), frame.counts());
      return frame;
    }
    StackId stack(StackId root) {
      std::vector<StackId> work{root};
      while (!work.empty()) {
        const StackId id = work.back();
        if (known_.contains(id)) {
          work.pop_back();
          continue;
        }
        StackFrame frame         = from_.stacks_[id];
        const bool is_bundle     = frame.node == StackSets::bundle;
        const std::size_t before = work.size();
        const auto want          = [&](StackId one) {
          if (!known_.contains(one)) work.push_back(one);
        };
        if (is_bundle) {
          for (const StackId one : from_.stacks_.ones(frame)) want(one);
        } else {
          want(frame.below);
        }
        if (work.size() != before) continue;
        work.pop_back();
        if (is_bundle) {
          std::vector<StackId> ids;
          for (const StackId one : from_.stacks_.ones(frame)) ids.push_back(known_[one]);
          known_[id] = to_.stacks_.joined(ids);
        } else {
          frame.below = known_[frame.below];
          known_[id]  = to_.stacks_.push(inner(frame));
        }
      }
      return known_[root];
    }

    Positions& to_;
    const Positions& from_;
    std::unordered_map<StackId, StackId> known_{{empty_stack, empty_stack}};
  };

 private:
  using Kind = Grammar::Kind;

  // The last part of a sequence needs no frame: what follows it is what follows the sequence.
  void enter_part(StoredId id, std::uint32_t part, StackId below, Frames& out) {
    const std::vector<StoredId>& parts = nodes_[id].children;
    if (part + 1 < parts.size()) below = stacks_.push({id, part + 1, 0, below});
    enter(parts[part], below, out);
  }

  // Frame of a repetition: `a` items so far, the current one included; `b` 1 inside a separator.
  void enter_item(StoredId id, CountSets::Counts done, StackId below, Frames& out) {
    const NodeStore::Node& node = nodes_[id];
    const auto counts           = stacks_.counts().next(done, node.occurrences);
    enter(node.children[0], stacks_.push({id, counts, 0, below}), out);
  }

  [[nodiscard]] bool has_key(const NodeStore::Node& node, SeenId seen) const {
    return keys_.has_more(node, 0, seen) || keys_.seen().may_add(node, seen);
  }
  void enter_member(StoredId id, SeenId seen, StackId below, Frames& out) {
    if (has_key(nodes_[id], seen)) out.push_back({id, seen.number(), 0, below});
  }
  void enter_other(const StackFrame& frame, std::size_t other, std::uint32_t key, Frames& out) {
    const NodeStore::Node& node = nodes_[frame.node];
    const SeenId seen           = keys_.seen().after_other(node, frame.seen(), key);
    enter(node.others[other].value,
          stacks_.push({frame.node, seen.number(), in_value, frame.below}), out);
  }

  void move_key(const NodeStore::Node& node, const StackFrame& frame, std::uint8_t byte,
                Frames& out) {
    using Step = KeyReader::Step::Kind;
    key_steps_.clear();
    keys_.read(node, frame.seen(), frame.key(), byte, key_steps_);
    for (const KeyReader::Step& step : key_steps_) {
      switch (step.kind) {
        case Step::inside:
          out.push_back({frame.node, frame.seen().number(), step.at, frame.below});
          break;
        case Step::member: {
          const SeenId seen = keys_.seen().after(node, frame.seen(), step.index);
          enter(node.children[step.index],
                stacks_.push({frame.node, seen.number(), in_value, frame.below}), out);
          break;
        }
        case Step::other: {
          const StackFrame key = in_other_key(frame, step.index, step.at);
          const text::Dfa& dfa = *nodes_[key.node].dfa;
          if (!dfa.live(step.at).empty()) out.push_back(key);
          if (dfa.accepting(step.at)) leave(key.below, out);
          break;
        }
        case Step::other_ends:
          enter_other(frame, step.index, step.at, out);
      }
    }
  }

  void move_lexeme(const NodeStore::Node& node, StackFrame frame, std::uint8_t byte, Frames& out) {
    const text::Dfa& dfa        = *node.dfa;
    const text::Dfa::State next = dfa.next(frame.dfa_state(), byte);
    if (next == text::Dfa::dead || !fits(node, frame, next)) return;
    count_unit(node, frame, next);
    if (!dfa.live(next).empty()) out.push_back(frame);
    if (dfa.accepting(next) && (dfa.closing(next) || frame.units() >= node.occurrences.min)) {
      leave(frame.below, out);
    }
  }
  // Whether a lexeme's bounds admit the transition to `next`.
  [[nodiscard]] static bool fits(const NodeStore::Node& node, const StackFrame& frame,
                                 text::Dfa::State next) noexcept {
    if (!node.dfa->boundary(frame.dfa_state())) return true;
    return node.dfa->closing(next) ? frame.units() >= node.occurrences.min
                                   : frame.units() < node.occurrences.max;
  }
  static void count_unit(const NodeStore::Node& node, StackFrame& frame,
                         text::Dfa::State next) noexcept {
    const bool begins = node.dfa->boundary(frame.dfa_state()) && !node.dfa->closing(next);
    frame.b           = counted(node.occurrences, frame.units() + (begins ? 1 : 0));
    frame.a           = next;
  }
  // A count past an open bound no longer matters.
  static std::uint32_t counted(const text::Occurrences& bounds, std::uint32_t count) noexcept {
    return bounds.max == text::Occurrences::unbounded ? std::min(count, bounds.min) : count;
  }

  // One stack for those of some positions, whose own bundles are opened.
  StackId bundled(const Frames& frames, std::size_t first, std::size_t last) {
    std::vector<StackId> ids;
    for (std::size_t i = first; i < last; ++i) ids.push_back(frames[i].below);
    return stacks_.joined(ids);
  }

  std::shared_ptr<NodeStore> shared_nodes_;
  const NodeStore& nodes_;
  StackSets stacks_{nodes_};
  KeyReader keys_{nodes_};
  KeyReader::Steps key_steps_;       // a step's memory
  std::vector<std::uint64_t> left_;  // [stacks] the step that last left it
  std::uint64_t step_ = 1, work_ = 0;
};

}  // namespace tooldecode::grammar
