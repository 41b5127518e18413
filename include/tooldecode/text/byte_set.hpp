/// \file
/// ByteSet: a set of byte values, the alphabet of everything in this layer.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace tooldecode::text {

/// A set of bytes as 256 bits; a regular value.
///
/// \par Complexity  O(1) for every member
/// \par Threads     a value
/// \par Errors      none
class ByteSet {
 public:
  constexpr ByteSet() = default;

  /// The bytes of a string.
  [[nodiscard]] static constexpr ByteSet of(std::string_view bytes) noexcept {
    ByteSet set;
    for (const char c : bytes) set.insert(static_cast<std::uint8_t>(c));
    return set;
  }
  /// The bytes first, ..., last.
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
  [[nodiscard]] constexpr bool empty() const noexcept { return *this == ByteSet{}; }
  /// The smallest member; requires a set that is not empty.
  [[nodiscard]] constexpr std::uint8_t front() const noexcept {
    unsigned w = 0;
    while (w < 3 && words_[w] == 0) ++w;
    return static_cast<std::uint8_t>(64 * w + static_cast<unsigned>(std::countr_zero(words_[w])));
  }
  /// Calls `visit(byte)` for each member, ascending.
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

/// Bytes as a class: `a-f"\xFF`, and "any" where all of them are in it.
[[nodiscard]] inline std::string byte_class(const ByteSet& set) {
  if (set.size() == 256) return "any";
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string text;
  const auto write = [&](unsigned byte) {
    if (byte > 0x20 && byte < 0x7F) {
      const auto c = static_cast<char>(byte);
      if (c == '\\' || c == '-') text += '\\';
      text += c;
    } else {
      text += "\\x";
      text += digits[byte / 16];
      text += digits[byte % 16];
    }
  };
  for (unsigned first = 0; first < 256; ++first) {
    if (!set.contains(static_cast<std::uint8_t>(first))) continue;
    unsigned last = first;
    while (last < 255 && set.contains(static_cast<std::uint8_t>(last + 1))) ++last;
    write(first);
    if (last > first + 1) text += '-';
    if (last > first) write(last);
    first = last;
  }
  return text;
}

}  // namespace tooldecode::text
