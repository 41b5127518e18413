#pragma once

#include <algorithm>
#include <unordered_set>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/text/dfa_units.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE const std::shared_ptr<NodeStore>& Positions::shared_nodes() const noexcept {
  return shared_nodes_;
}

TOOLDECODE_INLINE std::size_t Positions::bytes() const noexcept {
  return stacks_.bytes() + keys_.bytes() + core::heap_bytes(left_);
}

TOOLDECODE_INLINE void Positions::begin_step() {
  ++step_;
  later_.clear();  // what an error left
  depth_ = 0;
  if (work() - charged_ >= work_between_charges) charge();
}

TOOLDECODE_INLINE void Positions::charge() {
  const std::uint64_t steps = steps_of_work * (work() - charged_);
  charged_                  = work();
  BuildBudget::spend(steps);
}

TOOLDECODE_INLINE void Positions::count_visit() {
  ++work_;
  if (work() - charged_ >= 16 * work_between_charges) charge();
}

TOOLDECODE_INLINE void Positions::enter(StoredId id, StackId below, Frames& out) {
  if (depth_ == max_depth) return later_.push_back({id, below});
  ++depth_;
  enter_now(id, below, out);
  if (--depth_ == 0 && !later_.empty()) finish(out);
}

TOOLDECODE_INLINE void Positions::leave(StackId id, Frames& out) {
  if (depth_ == max_depth) return later_.push_back({text_end, id});
  ++depth_;
  leave_now(id, out);
  if (--depth_ == 0 && !later_.empty()) finish(out);
}

TOOLDECODE_INLINE void Positions::finish(Frames& out) {
  while (!later_.empty()) {
    const Later one = later_.back();
    later_.pop_back();
    depth_ = 1;
    one.node == text_end ? leave_now(one.stack, out) : enter_now(one.node, one.stack, out);
  }
  depth_ = 0;
}

TOOLDECODE_INLINE void Positions::enter_now(StoredId id, StackId below, Frames& out) {
  count_visit();
  const auto stay = [&] { out.push_back({id, 0, 0, below}); };
  nodes_[id].visit([&](const Node::Literal&) { stay(); }, [&](const Node::Trie&) { stay(); },
                   [&](const Node::Lexeme& lexeme) {
                     if (lexeme.dfa->accepting(0) && lexeme.units.min == 0) leave(below, out);
                     if (!lexeme.dfa->live(0).empty()) stay();
                   },
                   [&](const Node::Sequence& all) {
                     all.children.empty() ? leave(below, out) : enter_part(id, all, 0, below, out);
                   },
                   [&](const Node::Choice& choice) {
                     for (const StoredId child : choice.children) enter(child, below, out);
                   },
                   [&](const Node::Repeat& repeat) {
                     if (repeat.count.min == 0) leave(below, out);
                     enter_item(id, repeat, 0, below, out);
                   },
                   [&](const Node::Members& set) {
                     if (keys_.seen().is_complete(set, SeenId{})) leave(below, out);
                     enter_member(id, set, SeenId{}, below, out);
                   },
                   [&](const Node::Reference& reference) { enter(*reference.body, below, out); },
                   [&](const Node::Tag& tag) {
                     enter(tag.child, stacks_.push({id, 0, 0, below}), out);
                   },
                   [](const Node::Linked&) {});
}

TOOLDECODE_INLINE void Positions::leave_now(StackId id, Frames& out) {
  count_visit();
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
  nodes_[frame.node].visit(
      [&](const Node::Sequence& all) {
        enter_part(frame.node, all, frame.part(), frame.below, out);
      },
      [&](const Node::Repeat& repeat) {
        if (frame.stage() == 1)
          return enter_item(frame.node, repeat, frame.counts(), frame.below, out);
        if (stacks_.counts().may_end(frame.counts(), repeat.count)) leave(frame.below, out);
        if (stacks_.counts().may_go_on(frame.counts(), repeat.count)) {
          enter(repeat.separator, stacks_.push({frame.node, frame.counts(), 1, frame.below}), out);
        }
      },
      [&](const Node::Members& set) {
        if (frame.stage() == in_separator)
          return enter_member(frame.node, set, frame.seen(), frame.below, out);
        if (frame.stage() >= in_other)
          return enter_other(frame, set, frame.stage() - in_other, 0, out);
        if (keys_.seen().is_complete(set, frame.seen())) leave(frame.below, out);
        if (has_key(set, frame.seen())) {
          enter(set.separator,
                stacks_.push({frame.node, frame.seen().number(), in_separator, frame.below}), out);
        }
      },
      [&](const auto&) { leave(frame.below, out); });
}

TOOLDECODE_INLINE void Positions::move(StackFrame frame, std::uint8_t byte, Frames& out) {
  ++work_;
  if (frame.node == text_end) return;
  nodes_[frame.node].visit(
      [&](const Node::Literal& literal) {
        if (static_cast<std::uint8_t>(literal.text[frame.offset()]) != byte) return;
        if (++frame.a == literal.text.size()) return leave(frame.below, out);
        out.push_back(frame);
      },
      [&](const Node::Lexeme& lexeme) { move_lexeme(lexeme, frame, byte, out); },
      [&](const Node::Trie& trie) {
        const auto child = trie.literals->find_child(frame.trie_node(), byte);
        if (child == 0) return;
        const auto literal       = trie.literals->values(child);
        const auto [first, last] = trie.literals->children(child);
        if (first != last) out.push_back({frame.node, 0, child, frame.below});
        if (!literal.empty()) enter(trie.children[literal.front()], frame.below, out);
      },
      [&](const Node::Members& set) { move_key(set, frame, byte, out); }, [](const auto&) {});
}

TOOLDECODE_INLINE void Positions::merge(Frames& frames, std::size_t first) {
  if (frames.size() - first < 2) return;
  work_ += frames.size() - first;
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

TOOLDECODE_INLINE std::vector<std::uint32_t> Positions::tags(StackId id) const {
  std::vector<std::uint32_t> result;
  std::vector<StackId> others;  // stacks to try if this one has no mark, the next one last
  std::unordered_set<std::uint32_t> seen;  // bundles since the last mark
  while (true) {
    if (id == empty_stack) {
      if (others.empty()) return result;
      id = others.back();
      others.pop_back();
      continue;
    }
    const StackFrame& frame = stacks_[id];
    if (frame.node == StackSets::bundle) {
      const auto& ones = stacks_.ones(frame);
      if (seen.insert(frame.bundle()).second)
        others.insert(others.end(), ones.rbegin(), ones.rend());
      id = empty_stack;
      continue;
    }
    if (const auto* tag = nodes_[frame.node].as<Node::Tag>()) {
      result.push_back(tag->number);
      others.clear();
      seen.clear();
    }
    id = frame.below;
  }
}

TOOLDECODE_INLINE bool Positions::move_inside(StackFrame& frame, std::uint8_t byte) const {
  if (frame.node == text_end) return false;
  const auto* lexeme = nodes_[frame.node].as<Node::Lexeme>();
  if (lexeme == nullptr) return false;
  const text::Dfa::State next = lexeme->dfa->next(frame.dfa_state(), byte);
  if (next == text::Dfa::dead || !fits(*lexeme, frame, next) || lexeme->dfa->accepting(next))
    return false;
  count_unit(*lexeme, frame, next);
  return true;
}

TOOLDECODE_INLINE text::ByteSet Positions::candidates(const StackFrame& frame) const {
  if (frame.node == text_end) return {};
  return nodes_[frame.node].visit(
      [&](const Node::Literal& literal) {
        return text::ByteSet::of({&literal.text[frame.offset()], 1});
      },
      [&](const Node::Lexeme& lexeme) { return lexeme.dfa->live(frame.dfa_state()); },
      [&](const Node::Members& set) { return keys_.candidates(set, frame.key()); },
      [&](const Node::Trie& trie) {
        text::ByteSet bytes;
        const auto [first, last] = trie.literals->children(frame.trie_node());
        for (auto child = first; child < last; ++child) bytes.insert(trie.literals->label(child));
        return bytes;
      },
      [](const auto&) { return text::ByteSet(); });
}

TOOLDECODE_INLINE text::ByteSet Positions::plain_candidates(const StackFrame& frame) const {
  if (!is_in_key(frame)) return candidates(frame);
  return keys_.plain_candidates(*nodes_[frame.node].as<Node::Members>(), frame.key());
}

TOOLDECODE_INLINE bool Positions::is_in_key(const StackFrame& frame) const {
  return frame.node != text_end && nodes_[frame.node].as<Node::Members>() != nullptr;
}

TOOLDECODE_INLINE bool Positions::is_in_other_key(const StackFrame& frame) const {
  if (frame.node == text_end || frame.below == empty_stack) return false;
  StackFrame outer = stacks_[frame.below];
  if (outer.node == StackSets::bundle) outer = stacks_[stacks_.ones(outer).back()];
  return outer.node != StackSets::bundle && nodes_[outer.node].as<Node::Members>() != nullptr &&
         outer.stage() >= in_other;
}

TOOLDECODE_INLINE StackFrame Positions::in_other_key(const StackFrame& frame, std::size_t other,
                                                     text::Dfa::State state) {
  const auto place = static_cast<std::uint32_t>(in_other + other);
  return {nodes_[frame.node].as<Node::Members>()->others[other].key, state, 0,
          stacks_.push({frame.node, frame.seen().number(), place, frame.below})};
}

TOOLDECODE_INLINE StackFrame Positions::normal(StackFrame frame, std::uint32_t horizon) {
  if (frame.node == text_end) return frame;
  if (const auto* lexeme = nodes_[frame.node].as<Node::Lexeme>()) {
    const std::uint32_t ahead = lexeme->ends ? lexeme->ends->far() : 0;
    frame.b                   = CountSets::far_count(lexeme->units, frame.units(), horizon + ahead);
  }
  frame.below = stacks_.normal(frame.below, horizon);
  return frame;
}

TOOLDECODE_INLINE StackFrame Positions::Adoption::operator()(StackFrame frame) {
  if (frame.node == text_end) return frame;
  frame.below = stack(frame.below);
  return inner(frame);
}

TOOLDECODE_INLINE StackFrame Positions::Adoption::inner(StackFrame frame) {
  const Node& node = to_.nodes_[frame.node];
  if (const auto* set = node.as<Node::Members>()) {
    frame.a = to_.keys_.adopt(from_.keys_, *set, frame.seen()).number();
    if (frame.key() < KeyReader::end_of_key_positions)
      frame.b = to_.keys_.adopt(from_.keys_, frame.key());
  }
  if (node.as<Node::Repeat>() != nullptr)
    frame.a = to_.stacks_.counts().adopt(from_.stacks_.counts(), frame.counts());
  return frame;
}

TOOLDECODE_INLINE StackId Positions::Adoption::stack(StackId root) {
  const auto is_known = [&](StackId id) { return known_.contains(id); };
  from_.stacks_.visit_upwards(root, is_known, [&](StackId id, StackFrame frame) {
    if (frame.node == StackSets::bundle) {
      std::vector<StackId> ids;
      for (const StackId one : from_.stacks_.ones(frame)) ids.push_back(known_[one]);
      known_[id] = to_.stacks_.joined(ids);
    } else {
      frame.below = known_[frame.below];
      known_[id]  = to_.stacks_.push(inner(frame));
    }
  });
  return known_[root];
}

TOOLDECODE_INLINE void Positions::enter_part(StoredId id, const Node::Sequence& all,
                                             std::uint32_t part, StackId below, Frames& out) {
  if (part + 1 < all.children.size()) below = stacks_.push({id, part + 1, 0, below});
  enter(all.children[part], below, out);
}

TOOLDECODE_INLINE void Positions::enter_item(StoredId id, const Node::Repeat& repeat,
                                             CountSets::Counts done, StackId below, Frames& out) {
  const auto counts = stacks_.counts().next(done, repeat.count);
  enter(repeat.item, stacks_.push({id, counts, 0, below}), out);
}

TOOLDECODE_INLINE bool Positions::has_key(const Node::Members& set, SeenId seen) const {
  return keys_.has_more(set, 0, seen) || keys_.seen().may_add(set, seen);
}

TOOLDECODE_INLINE void Positions::enter_member(StoredId id, const Node::Members& set, SeenId seen,
                                               StackId below, Frames& out) {
  if (has_key(set, seen)) out.push_back({id, seen.number(), 0, below});
}

TOOLDECODE_INLINE void Positions::enter_other(const StackFrame& frame, const Node::Members& set,
                                              std::size_t other, std::uint32_t key, Frames& out) {
  const OtherValue next = value_of_other(frame, set, other, key);
  enter(next.value, next.behind, out);
}

TOOLDECODE_INLINE Positions::OtherValue Positions::value_of_other(const StackFrame& frame,
                                                                  const Node::Members& set,
                                                                  std::size_t other,
                                                                  std::uint32_t key) {
  const SeenId seen = keys_.seen().after_other(set, frame.seen(), key);
  return {set.others[other].value,
          stacks_.push({frame.node, seen.number(), in_value, frame.below})};
}

TOOLDECODE_INLINE Positions::OtherValue Positions::value_of_other_key(const StackFrame& key) {
  const StackFrame set = stacks_[key.below];
  return value_of_other(set, *nodes_[set.node].as<Node::Members>(), set.stage() - in_other, 0);
}

TOOLDECODE_INLINE void Positions::move_key(const Node::Members& set, const StackFrame& frame,
                                           std::uint8_t byte, Frames& out) {
  using Step = KeyReader::Step::Kind;
  key_steps_.clear();
  keys_.read(set, frame.seen(), frame.key(), byte, key_steps_);
  for (const KeyReader::Step& step : key_steps_) {
    switch (step.kind) {
      case Step::inside:
        out.push_back({frame.node, frame.seen().number(), step.at, frame.below});
        break;
      case Step::member: {
        const SeenId seen = keys_.seen().after(set, frame.seen(), step.index);
        enter(set.children[step.index],
              stacks_.push({frame.node, seen.number(), in_value, frame.below}), out);
        break;
      }
      case Step::other: {
        const StackFrame key = in_other_key(frame, step.index, step.at);
        const text::Dfa& dfa = nodes_.lexeme(key.node);
        if (!dfa.live(step.at).empty()) out.push_back(key);
        if (dfa.accepting(step.at)) leave(key.below, out);
        break;
      }
      case Step::other_ends:
        enter_other(frame, set, step.index, step.at, out);
    }
  }
}

TOOLDECODE_INLINE void Positions::move_lexeme(const Node::Lexeme& lexeme, StackFrame frame,
                                              std::uint8_t byte, Frames& out) {
  const text::Dfa& dfa        = *lexeme.dfa;
  const text::Dfa::State next = dfa.next(frame.dfa_state(), byte);
  if (next == text::Dfa::dead || !fits(lexeme, frame, next)) return;
  count_unit(lexeme, frame, next);
  if (!dfa.live(next).empty()) out.push_back(frame);
  if (dfa.accepting(next) && (dfa.closing(next) || frame.units() >= lexeme.units.min)) {
    leave(frame.below, out);
  }
}

TOOLDECODE_INLINE bool Positions::fits(const Node::Lexeme& lexeme, const StackFrame& frame,
                                       text::Dfa::State next) noexcept {
  if (lexeme.ends) {
    StackFrame moved = frame;
    count_unit(lexeme, moved, next);
    return lexeme.ends->is_within_reach(next, moved.units(), lexeme.units);
  }
  if (!lexeme.dfa->boundary(frame.dfa_state())) return true;
  return lexeme.dfa->closing(next) ? frame.units() >= lexeme.units.min
                                   : frame.units() < lexeme.units.max;
}

TOOLDECODE_INLINE void Positions::count_unit(const Node::Lexeme& lexeme, StackFrame& frame,
                                             text::Dfa::State next) noexcept {
  const bool begins = lexeme.dfa->boundary(frame.dfa_state()) && !lexeme.dfa->closing(next);
  frame.b           = counted(lexeme.units, frame.units() + (begins ? 1 : 0));
  frame.a           = next;
}

TOOLDECODE_INLINE std::uint32_t Positions::counted(const text::Occurrences& bounds,
                                                   std::uint32_t count) noexcept {
  return bounds.max == text::Occurrences::unbounded ? std::min(count, bounds.min) : count;
}

TOOLDECODE_INLINE StackId Positions::bundled(const Frames& frames, std::size_t first,
                                             std::size_t last) {
  std::vector<StackId> ids;
  for (std::size_t i = first; i < last; ++i) ids.push_back(frames[i].below);
  return stacks_.joined(ids);
}

}  // namespace tooldecode::grammar
