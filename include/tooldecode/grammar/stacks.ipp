/// \file
/// What stacks.hpp declares.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/id.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE bool StackFrame::is_beside(const StackFrame& other) const noexcept {
  return node == other.node && a == other.a && b == other.b;
}

TOOLDECODE_INLINE std::uint64_t hash_of(const StackFrame& frame) noexcept {
  const std::uint64_t hash = core::hash_combine(frame.node.number(), frame.a);
  return core::hash_combine(core::hash_combine(hash, frame.b), frame.below);
}

TOOLDECODE_INLINE std::uint64_t hash_of(std::span<const StackFrame> frames) noexcept {
  std::uint64_t hash = frames.size();
  for (const StackFrame& frame : frames) hash = core::hash_combine(hash, hash_of(frame));
  return hash;
}

TOOLDECODE_INLINE StackPool::StackPool() {
  frames_.emplace(StackFrame{});
}

TOOLDECODE_INLINE StackId StackPool::push(const StackFrame& frame) {
  return StackId(index_.intern(
      hash_of(frame), [&](std::uint32_t id) { return id != 0 && frames_[id] == frame; },
      [&] { return static_cast<std::uint32_t>(frames_.emplace(frame)); }));
}

TOOLDECODE_INLINE const StackFrame& StackPool::operator[](StackId id) const noexcept {
  return frames_[id.index()];
}

TOOLDECODE_INLINE std::size_t StackPool::bytes() const noexcept {
  return frames_.size() * (sizeof(StackFrame) + core::InternIndex::bytes_each);
}

}  // namespace tooldecode::grammar
