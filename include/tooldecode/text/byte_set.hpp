/// \file
/// ByteSet: a set of byte values.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// A set of bytes, stored as 256 bits; a regular value.
///
/// \par Complexity  O(1) for every member
class ByteSet {
 public:
  constexpr ByteSet() = default;

  [[nodiscard]] static constexpr ByteSet of(std::string_view bytes) noexcept {
    ByteSet set;
    for (const char c : bytes) set.insert(static_cast<std::uint8_t>(c));
    return set;
  }
  /// The bytes from first to last, both included.
  [[nodiscard]] static constexpr ByteSet range(std::uint8_t first, std::uint8_t last) noexcept {
    ByteSet set;
    for (unsigned b = first; b <= last; ++b) set.insert(static_cast<std::uint8_t>(b));
    return set;
  }
  [[nodiscard]] static constexpr ByteSet all() noexcept { return range(0, 255); }

  constexpr void insert(std::uint8_t byte) noexcept {
    words_[byte >> 6] |= std::uint64_t{1} << (byte & 63);
  }
  constexpr void erase(std::uint8_t byte) noexcept {
    words_[byte >> 6] &= ~(std::uint64_t{1} << (byte & 63));
  }
  [[nodiscard]] constexpr bool contains(std::uint8_t byte) const noexcept {
    return words_[byte >> 6] >> (byte & 63) & 1;
  }
  [[nodiscard]] constexpr int size() const noexcept {
    int count = 0;
    for (const std::uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  [[nodiscard]] constexpr bool empty() const noexcept {
    return (words_[0] | words_[1] | words_[2] | words_[3]) == 0;
  }
  /// The smallest member; requires a non-empty set.
  [[nodiscard]] constexpr std::uint8_t front() const noexcept {
    unsigned w = 0;
    while (w < 3 && words_[w] == 0) ++w;
    return static_cast<std::uint8_t>(64 * w + static_cast<unsigned>(std::countr_zero(words_[w])));
  }
  template <class Visit>
  constexpr void for_each(Visit visit) const {
    for (unsigned w = 0; w < 4; ++w) {
      for (std::uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
        visit(static_cast<std::uint8_t>(64 * w + static_cast<unsigned>(std::countr_zero(bits))));
      }
    }
  }

  constexpr ByteSet& operator|=(const ByteSet& other) noexcept {
    for (unsigned w = 0; w < 4; ++w) words_[w] |= other.words_[w];
    return *this;
  }
  constexpr ByteSet& operator&=(const ByteSet& other) noexcept {
    for (unsigned w = 0; w < 4; ++w) words_[w] &= other.words_[w];
    return *this;
  }
  [[nodiscard]] friend constexpr ByteSet operator|(ByteSet a, const ByteSet& b) noexcept {
    return a |= b;
  }
  [[nodiscard]] friend constexpr ByteSet operator&(ByteSet a, const ByteSet& b) noexcept {
    return a &= b;
  }
  [[nodiscard]] friend constexpr ByteSet operator~(ByteSet a) noexcept {
    for (std::uint64_t& word : a.words_) word = ~word;
    return a;
  }
  friend constexpr bool operator==(const ByteSet&, const ByteSet&) = default;

 private:
  std::array<std::uint64_t, 4> words_{};
};

/// Writes a set as a character class such as `a-f`; other bytes by number, all bytes as `any`.
[[nodiscard]] std::string byte_class(const ByteSet& set);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/byte_set.ipp>
#endif
