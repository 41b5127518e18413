/// \file
/// TokenMask: a set of tokens in the layout that engines' mask kernels read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Words of a mask over V tokens.
[[nodiscard]] constexpr std::size_t mask_words(std::size_t vocabulary_size) noexcept {
  return (vocabulary_size + 31) / 32;
}

/// A set of tokens that owns its words: bit `t % 32` of word `t / 32` is token t.
///
/// \par Shapes      words [ceil(V / 32)], bits at and past V are 0
/// \par Complexity  contains and insert O(1), the rest O(V / 32)
class TokenMask {
 public:
  TokenMask() = default;
  explicit TokenMask(std::size_t vocabulary_size) : words_(mask_words(vocabulary_size)) {}

  [[nodiscard]] MaskView words() noexcept { return words_; }
  [[nodiscard]] std::span<const std::uint32_t> words() const noexcept { return words_; }

  [[nodiscard]] bool contains(TokenId token) const noexcept {
    const auto t = static_cast<std::size_t>(token);
    return words_[t / 32] >> (t % 32) & 1;
  }
  void insert(TokenId token) noexcept {
    const auto t = static_cast<std::size_t>(token);
    words_[t / 32] |= std::uint32_t{1} << (t % 32);
  }
  void erase(TokenId token) noexcept {
    const auto t = static_cast<std::size_t>(token);
    words_[t / 32] &= ~(std::uint32_t{1} << (t % 32));
  }
  TokenMask& operator|=(const TokenMask& other) noexcept {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }
  TokenMask& operator&=(const TokenMask& other) noexcept {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
    return *this;
  }
  /// Calls `visit(token)` for each token, ascending.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint32_t bits = words_[w]; bits != 0; bits &= bits - 1) {
        visit(static_cast<TokenId>(32 * w + static_cast<std::size_t>(std::countr_zero(bits))));
      }
    }
  }
  /// Number of tokens in the set.
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t total = 0;
    for (const std::uint32_t word : words_) total += static_cast<std::size_t>(std::popcount(word));
    return total;
  }
  friend bool operator==(const TokenMask&, const TokenMask&) = default;

 private:
  std::vector<std::uint32_t> words_;  // [ceil(V / 32)]
};

}  // namespace tooldecode
