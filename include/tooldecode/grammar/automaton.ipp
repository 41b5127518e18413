#pragma once

#include <algorithm>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/left_recursion.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE Automaton::Automaton(const Grammar& grammar, NodeId root, std::uint32_t horizon)
    : Automaton(horizon) {
  initial_ = add(grammar, root);
}

TOOLDECODE_INLINE StoredId Automaton::compile(const Grammar& grammar, NodeId root) {
  if (is_left_recursive(grammar)) {
    throw Error(Errc::limit_exceeded, "", "the grammar refers to itself without reading a byte");
  }
  const StoredId node = positions_.nodes().add(grammar, root);
  if (node == NodeStore::nothing) {
    throw Error(Errc::unsatisfiable_schema, "", "no text satisfies the grammar");
  }
  return node;
}

TOOLDECODE_INLINE Automaton::State Automaton::begin(StoredId node) {
  const std::lock_guard lock(mutex_);
  Positions::Frames frames;
  positions_.begin_charging();
  positions_.begin_step();
  positions_.enter(node, empty_stack, frames);
  positions_.merge(frames, 0);
  positions_.charge();
  return intern(frames);
}

TOOLDECODE_INLINE Automaton::State Automaton::adopt(const Automaton& from, State state) {
  const std::lock_guard lock(mutex_);
  Positions::Adoption adopted(positions_, from.positions_);
  Positions::Frames frames;
  for (const StackFrame& frame : from.positions(state)) frames.push_back(adopted(frame));
  positions_.merge(frames, 0);
  return intern(frames);
}

TOOLDECODE_INLINE std::span<const StackFrame> Automaton::positions(State state) const noexcept {
  return records_[state].frames;
}

TOOLDECODE_INLINE std::optional<Automaton::State> Automaton::step(State state,
                                                                  std::uint8_t byte) const {
  const auto c = static_cast<char>(byte);
  return advance(state, {&c, 1});
}

TOOLDECODE_INLINE std::optional<Automaton::State> Automaton::advance(State state,
                                                                     std::string_view bytes) const {
  const auto positions = this->positions(state);
  if (positions.size() == 1) {  // often the text stays inside one lexeme and needs no new state
    StackFrame frame = positions[0];
    while (!bytes.empty() && positions_.move_inside(frame, static_cast<std::uint8_t>(bytes[0]))) {
      bytes.remove_prefix(1);
    }
    if (bytes.empty() && frame == positions[0]) return state;
    Cursor walk(*this);
    return walk.advance(walk.begin(frame), bytes);
  }
  Cursor walk(*this);
  return walk.advance(walk.begin(state), bytes);
}

TOOLDECODE_INLINE Automaton::Cursor::Cursor(const Automaton& automaton)
    : automaton_(automaton), lock_(automaton.mutex_), frames_(automaton.scratch_) {
  frames_.clear();
  automaton_.positions_.begin_charging();
}

TOOLDECODE_INLINE Automaton::Cursor::Span Automaton::Cursor::begin(State state) {
  const std::uint32_t first = size();
  const auto& frames        = automaton_.records_[state].frames;
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  return {first, size()};
}

TOOLDECODE_INLINE Automaton::Cursor::Span Automaton::Cursor::begin(const StackFrame& frame) {
  frames_.push_back(frame);
  return {size() - 1, size()};
}

TOOLDECODE_INLINE Automaton::Cursor::Span Automaton::Cursor::begin(
    const std::vector<StackFrame>& frames) {
  const std::uint32_t first = size();
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  return {first, size()};
}

TOOLDECODE_INLINE Automaton::Cursor::Span Automaton::Cursor::after(
    const std::vector<StackFrame>& frames) {
  const std::uint32_t first = size();
  automaton_.positions_.begin_step();
  for (const StackFrame& frame : frames) automaton_.positions_.leave(frame.below, frames_);
  return distinct(first);
}

TOOLDECODE_INLINE Automaton::Cursor::Span Automaton::Cursor::enter(StoredId node) {
  const std::uint32_t first = size();
  automaton_.positions_.begin_step();
  automaton_.positions_.enter(node, empty_stack, frames_);
  return distinct(first);
}

TOOLDECODE_INLINE Automaton::Cursor::Span Automaton::Cursor::step(Span place, std::uint8_t byte) {
  const std::uint32_t first = size();
  automaton_.positions_.begin_step();
  for (std::uint32_t i = place.first; i < place.last; ++i) {
    automaton_.positions_.move(frames_[i], byte, frames_);
  }
  return size() - first > 1 ? distinct(first) : Span{first, size()};
}

TOOLDECODE_INLINE std::span<const StackFrame> Automaton::Cursor::positions(Span place) const {
  return {frames_.data() + place.first, frames_.data() + place.last};
}

TOOLDECODE_INLINE text::ByteSet Automaton::Cursor::candidates(Span place) const {
  text::ByteSet set;
  for (const StackFrame& frame : positions(place)) set |= automaton_.positions_.candidates(frame);
  return set;
}

TOOLDECODE_INLINE std::optional<Automaton::State> Automaton::Cursor::advance(
    Span place, std::string_view bytes) {
  for (const char c : bytes) {
    place = step(place, static_cast<std::uint8_t>(c));
    if (place.empty()) return std::nullopt;
  }
  return settle(place);
}

TOOLDECODE_INLINE text::ByteSet Automaton::Cursor::allowed(State state) {
  const Span place = begin(state);
  text::ByteSet set;
  candidates(place).for_each([&](std::uint8_t byte) {
    const Span next = step(place, byte);
    if (!next.empty()) set.insert(byte);
    drop(next);
  });
  return set;
}

TOOLDECODE_INLINE std::optional<std::uint8_t> Automaton::Cursor::only_byte(
    Span place, const text::ByteSet& passed_over) {
  std::optional<std::uint8_t> only;
  for (const StackFrame& frame : positions(place)) {
    if (frame.node == Positions::text_end) return std::nullopt;
  }
  text::ByteSet set;
  for (const StackFrame& frame : positions(place)) {
    set |= automaton_.positions_.plain_candidates(frame);
  }
  set = set & ~passed_over;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (!set.contains(byte)) continue;
    const Span next    = step(place, byte);
    const bool follows = !next.empty();
    drop(next);
    if (follows && only) return std::nullopt;
    if (follows) only = byte;
  }
  return only;
}

TOOLDECODE_INLINE bool Automaton::Cursor::move_inside(StackFrame& frame, std::uint8_t byte) const {
  return automaton_.positions_.move_inside(frame, byte);
}

TOOLDECODE_INLINE StackFrame Automaton::Cursor::in_other_key(const StackFrame& frame,
                                                             std::size_t other,
                                                             text::Dfa::State state) {
  return automaton_.positions_.in_other_key(frame, other, state);
}

TOOLDECODE_INLINE Automaton::Cursor::Span Automaton::Cursor::distinct(std::uint32_t first) {
  automaton_.positions_.merge(frames_, first);
  return {first, size()};
}

TOOLDECODE_INLINE Automaton::State Automaton::representative(State state) const {
  const Record& record = records_[state];
  if (const State known = record.representative.load(std::memory_order_acquire); known != unknown) {
    return known;
  }
  const std::lock_guard lock(mutex_);
  positions_.begin_charging();
  Positions::Frames frames;
  for (const StackFrame& frame : record.frames) {
    frames.push_back(positions_.normal(frame, horizon_));
  }
  State made = state;
  if (!std::ranges::equal(frames, record.frames)) {
    positions_.merge(frames, 0);
    made = intern(frames);
  }
  positions_.charge();
  record.representative.store(made, std::memory_order_release);
  return made;
}

TOOLDECODE_INLINE std::atomic<const void*>& Automaton::attachment(State state) const noexcept {
  return records_[state].attachment;
}

TOOLDECODE_INLINE const std::shared_ptr<NodeStore>& Automaton::shared_nodes() const noexcept {
  return positions_.shared_nodes();
}

TOOLDECODE_INLINE bool Automaton::is_in_other_key(const StackFrame& frame) const {
  return positions_.is_in_other_key(frame);
}

TOOLDECODE_INLINE std::vector<std::uint32_t> Automaton::tags(State state) const {
  return tags_at(records_[state].frames.front());
}

TOOLDECODE_INLINE std::vector<std::uint32_t> Automaton::tags_at(const StackFrame& position) const {
  return positions_.tags(position.below);
}

TOOLDECODE_INLINE std::size_t Automaton::size() const {
  const std::lock_guard lock(mutex_);
  return records_.size();
}

TOOLDECODE_INLINE std::size_t Automaton::bytes() const {
  const std::lock_guard lock(mutex_);
  return records_.bytes() + index_.bytes() + frame_bytes_ + core::heap_bytes(scratch_) +
         positions_.bytes() + lengths_.bytes();
}

TOOLDECODE_INLINE Automaton::Record::Record(std::span<const StackFrame> all)
    : frames(all.begin(), all.end()),
      accepting(std::any_of(all.begin(), all.end(), [](const StackFrame& frame) {
        return frame.node == Positions::text_end;
      })) {}

TOOLDECODE_INLINE Automaton::State Automaton::intern(std::span<const StackFrame> frames) const {
  TOOLDECODE_ASSERT(!frames.empty());
  const auto equals = [&](std::uint32_t id) {
    return std::equal(frames.begin(), frames.end(), records_[id].frames.begin(),
                      records_[id].frames.end());
  };
  return index_.intern(hash_of(frames), equals, [&] {
    const auto made = static_cast<State>(records_.emplace(frames));
    frame_bytes_ += core::heap_bytes(records_[made].frames);
    return made;
  });
}

}  // namespace tooldecode::grammar
