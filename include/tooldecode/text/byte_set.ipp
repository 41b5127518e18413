#pragma once

#include <tooldecode/text/byte_set.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::string byte_class(const ByteSet& set) {
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
