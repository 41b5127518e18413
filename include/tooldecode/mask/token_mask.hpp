/// \file
/// TokenMask: a set of tokens in the bit layout of engines' mask kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// A set of tokens that owns its words: token t is bit `t % 32` of word `t / 32`.
///
/// \par Shapes      words [ceil(V / 32)]; bits from V on are 0
/// \par Complexity  contains and insert O(1), the rest O(V / 32)
class TokenMask {
 public:
  TokenMask() = default;
  explicit TokenMask(std::size_t vocabulary_size) : words_(mask_word_count(vocabulary_size)) {}

  [[nodiscard]] MaskView words() noexcept { return words_; }
  [[nodiscard]] ConstMaskView words() const noexcept { return words_; }

  [[nodiscard]] bool contains(TokenId token) const noexcept { return words().contains(token); }
  void insert(TokenId token) noexcept { words().insert(token); }
  void erase(TokenId token) noexcept { words().erase(token); }
  TokenMask& operator|=(const TokenMask& other) noexcept {
    words() |= other.words();
    return *this;
  }
  TokenMask& operator&=(const TokenMask& other) noexcept {
    words() &= other.words();
    return *this;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    words().for_each(visit);
  }
  [[nodiscard]] std::size_t count() const noexcept { return words().count(); }
  /// What the heap takes for the words.
  [[nodiscard]] std::size_t bytes() const noexcept { return core::heap_bytes(words_); }
  friend bool operator==(const TokenMask&, const TokenMask&) = default;

 private:
  std::vector<std::uint32_t> words_;  // [ceil(V / 32)]
};

}  // namespace tooldecode
