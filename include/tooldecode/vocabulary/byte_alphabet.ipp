#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tooldecode/vocabulary/byte_alphabet.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::optional<std::string> find_alphabet_bytes(std::string_view text) {
  static const auto byte_of = [] {
    std::array<int, 0x144> table;
    table.fill(-1);
    std::uint32_t next = 0x100;
    for (std::uint32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      table[printable ? b : next++] = static_cast<int>(b);
    }
    return table;
  }();
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<std::uint32_t>(static_cast<std::uint8_t>(text[i]));
    if (c >= 0x80) {
      if (c < 0xC2 || c > 0xDF || i + 1 == text.size()) return std::nullopt;
      c = (c & 0x1F) << 6 | (static_cast<std::uint8_t>(text[++i]) & 0x3F);
    }
    if (c >= byte_of.size() || byte_of[c] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte_of[c]));
  }
  return bytes;
}

TOOLDECODE_INLINE std::string replace_space_marks(std::string_view text) {
  constexpr std::string_view mark = "\u2581";
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_mark = text.substr(at).starts_with(mark);
    result.push_back(is_mark ? ' ' : text[at]);
    at += is_mark ? mark.size() : 1;
  }
  return result;
}

TOOLDECODE_INLINE std::optional<char> find_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    const std::size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = 16 * value + static_cast<unsigned>(digit);
  }
  return static_cast<char>(value);
}

}  // namespace tooldecode::vocabulary
