/// \file
/// What token_mask.hpp declares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

TOOLDECODE_INLINE bool TokenMask::contains(TokenId token) const noexcept {
  const auto t = static_cast<std::size_t>(token);
  return words_[t / 32] >> (t % 32) & 1;
}

TOOLDECODE_INLINE void TokenMask::insert(TokenId token) noexcept {
  const auto t = static_cast<std::size_t>(token);
  words_[t / 32] |= std::uint32_t{1} << (t % 32);
}

TOOLDECODE_INLINE void TokenMask::erase(TokenId token) noexcept {
  const auto t = static_cast<std::size_t>(token);
  words_[t / 32] &= ~(std::uint32_t{1} << (t % 32));
}

TOOLDECODE_INLINE TokenMask& TokenMask::operator|=(const TokenMask& other) noexcept {
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  return *this;
}

TOOLDECODE_INLINE TokenMask& TokenMask::operator&=(const TokenMask& other) noexcept {
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  return *this;
}

}  // namespace tooldecode
