/// \file
/// What transition_cache.hpp declares.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <tooldecode/constraint/transition_cache.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::constraint {

TOOLDECODE_INLINE std::optional<TransitionCache::State> TransitionCache::find(
    State state, TokenId token) const noexcept {
  if (state >= max_states || static_cast<std::uint32_t>(token) >= max_tokens) {
    return std::nullopt;
  }
  const std::uint64_t from  = key(state, token);
  const std::uint64_t known = slots_[slot(from)].load(std::memory_order_acquire);
  if (known >> state_bits != from || (known & (max_states - 1)) == 0) return std::nullopt;
  return static_cast<State>(known & (max_states - 1)) - 1;
}

TOOLDECODE_INLINE void TransitionCache::insert(State state, TokenId token, State next) noexcept {
  if (state >= max_states || next + 1 >= max_states ||
      static_cast<std::uint32_t>(token) >= max_tokens) {
    return;
  }
  const std::uint64_t from = key(state, token);
  slots_[slot(from)].store(from << state_bits | (next + 1), std::memory_order_release);
}

TOOLDECODE_INLINE std::uint64_t TransitionCache::key(State state, TokenId token) noexcept {
  return std::uint64_t{state} << token_bits | static_cast<std::uint32_t>(token);
}

TOOLDECODE_INLINE std::size_t TransitionCache::slot(std::uint64_t from) noexcept {
  return core::hash_combine(0, from) & (slots - 1);
}

}  // namespace tooldecode::constraint
