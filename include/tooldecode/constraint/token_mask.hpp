/// \file
/// TokenMask: a set of tokens in the layout that engines' mask kernels read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// A set of tokens that owns its words: bit `t % 32` of word `t / 32` is token t.
///
/// \par Shapes      words [ceil(V / 32)], bits at and past V are 0
/// \par Complexity  contains and insert O(1), the rest O(V / 32)
class TokenMask {
 public:
  TokenMask() = default;
  explicit TokenMask(std::size_t vocabulary_size) : words_(mask_word_count(vocabulary_size)) {}

  [[nodiscard]] MaskView words() noexcept { return words_; }
  [[nodiscard]] ConstMaskView words() const noexcept { return words_; }

  [[nodiscard]] bool contains(TokenId token) const noexcept;
  void insert(TokenId token) noexcept;
  void erase(TokenId token) noexcept;
  TokenMask& operator|=(const TokenMask& other) noexcept;
  TokenMask& operator&=(const TokenMask& other) noexcept;
  /// Calls `visit(token)` for each token, ascending.
  template <class Visit>
  void for_each(Visit visit) const {
    for_each_allowed(words(), visit);
  }
  /// Number of tokens in the set.
  [[nodiscard]] std::size_t count() const noexcept { return count_allowed(words()); }
  friend bool operator==(const TokenMask&, const TokenMask&) = default;

 private:
  std::vector<std::uint32_t> words_;  // [ceil(V / 32)]
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/token_mask.ipp>
#endif
