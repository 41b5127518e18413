/// \file
/// TransitionCache: a lock-free cache of transitions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::mask {

/// Caches some of the transitions (state, token) -> state; a newer one replaces an older one.
///
/// One word holds a whole transition, so a reader never sees half of it. States from 2^22 and
/// tokens from 2^20 on are not cached.
///
/// \par Complexity  O(1); 512 KiB
/// \par Threads     every member may run concurrently
class TransitionCache {
 public:
  using State = std::uint32_t;

  [[nodiscard]] std::optional<State> find(State state, TokenId token) const noexcept;
  void insert(State state, TokenId token, State next) noexcept;

 private:
  static constexpr unsigned state_bits      = 22;
  static constexpr unsigned token_bits      = 20;
  static constexpr std::uint32_t max_states = std::uint32_t{1} << state_bits;
  static constexpr std::uint32_t max_tokens = std::uint32_t{1} << token_bits;
  static constexpr std::size_t slots        = std::size_t{1} << 16;

  static std::uint64_t key(State state, TokenId token) noexcept;
  static std::size_t slot(std::uint64_t from) noexcept;

  std::unique_ptr<std::atomic<std::uint64_t>[]> slots_ =
      std::make_unique<std::atomic<std::uint64_t>[]>(slots);
};

inline std::optional<TransitionCache::State> TransitionCache::find(State state,
                                                                   TokenId token) const noexcept {
  if (state >= max_states || static_cast<std::uint32_t>(token) >= max_tokens) {
    return std::nullopt;
  }
  const std::uint64_t from  = key(state, token);
  const std::uint64_t known = slots_[slot(from)].load(std::memory_order_acquire);
  if (known >> state_bits != from || (known & (max_states - 1)) == 0) return std::nullopt;
  return static_cast<State>(known & (max_states - 1)) - 1;
}

inline void TransitionCache::insert(State state, TokenId token, State next) noexcept {
  if (state >= max_states || next + 1 >= max_states ||
      static_cast<std::uint32_t>(token) >= max_tokens) {
    return;
  }
  const std::uint64_t from = key(state, token);
  slots_[slot(from)].store(from << state_bits | (next + 1), std::memory_order_release);
}

inline std::uint64_t TransitionCache::key(State state, TokenId token) noexcept {
  return std::uint64_t{state} << token_bits | static_cast<std::uint32_t>(token);
}

inline std::size_t TransitionCache::slot(std::uint64_t from) noexcept {
  return core::hash_combine(0, from) & (slots - 1);
}

}  // namespace tooldecode::mask
