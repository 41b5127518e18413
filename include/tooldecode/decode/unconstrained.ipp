#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/decode/unconstrained.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Unconstrained::Unconstrained(std::size_t vocabulary_size,
                                               std::vector<TokenId> end_tokens)
    : vocabulary_size_(vocabulary_size), end_tokens_(std::move(end_tokens)) {}

TOOLDECODE_INLINE std::optional<Unconstrained::State> Unconstrained::advance(
    State state, TokenId token) const noexcept {
  if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_size_) return std::nullopt;
  const bool ends = std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
  if (state.finished && !ends) return std::nullopt;
  return State{ends};
}

TOOLDECODE_INLINE void Unconstrained::fill_mask(State state, MaskView words) const noexcept {
  if (!state.finished) {
    words.fill(vocabulary_size_);
    return;
  }
  words.clear();
  for (const TokenId token : end_tokens_) {
    if (static_cast<std::size_t>(token) < vocabulary_size_) words.insert(token);
  }
}

}  // namespace tooldecode
