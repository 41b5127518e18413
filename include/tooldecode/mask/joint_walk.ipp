#pragma once

#include <algorithm>

#include <tooldecode/mask/joint_walk.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE std::uint32_t JointWalk::step(std::uint32_t from, std::uint8_t byte) {
  if (!sets_[from].candidates.contains(byte)) return none;
  if (!sets_[from].next) {
    sets_[from].next = std::make_unique<Row>();
    sets_[from].next->fill(unknown);
  }
  if (const std::uint32_t known = (*sets_[from].next)[byte]; known != unknown) return known;
  const Span place          = walk_.step(sets_[from].place, byte);
  const std::uint32_t next  = place.empty() ? none : intern(place);
  (*sets_[from].next)[byte] = next;
  return next;
}

TOOLDECODE_INLINE std::uint32_t JointWalk::intern(Span place) {
  const auto positions = walk_.positions(place);
  bool is_new          = false;
  const auto same      = [&](std::uint32_t id) {
    return std::ranges::equal(walk_.positions(sets_[id].place), positions);
  };
  const std::uint32_t id = index_.intern(grammar::hash_of(positions), same, [&] {
    is_new = true;
    sets_.push_back({place, walk_.candidates(place)});
    return static_cast<std::uint32_t>(sets_.size() - 1);
  });
  if (!is_new) walk_.drop(place);
  return id;
}

}  // namespace tooldecode::mask
