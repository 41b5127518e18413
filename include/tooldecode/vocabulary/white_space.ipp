#pragma once

#include <array>
#include <charconv>
#include <cstddef>

#include <tooldecode/text/unicode_properties.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/vocabulary/white_space.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE bool is_white_space(std::uint32_t c) noexcept {
  for (const auto& [first, last] : text::white_space_ranges) {
    if (c <= last) return c >= first;
  }
  return false;
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::string_view without_first_spaces(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto first = text::find_code_point(text, 0);
    if (!first || !detail::is_white_space(first->value)) break;
    text.remove_prefix(first->bytes);
  }
  return text;
}

TOOLDECODE_INLINE std::string_view without_last_spaces(std::string_view text) noexcept {
  while (!text.empty()) {
    std::size_t at = text.size() - 1;
    while (at > 0 && (static_cast<std::uint8_t>(text[at]) & 0xC0) == 0x80) --at;
    const auto last = text::find_code_point(text, at);
    if (!last || at + last->bytes != text.size() || !detail::is_white_space(last->value)) break;
    text.remove_suffix(last->bytes);
  }
  return text;
}

}  // namespace tooldecode::vocabulary

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE std::string hexadecimal_escape(std::uint32_t c) {
  std::array<char, 8> digits{};
  char* end = std::to_chars(digits.data(), digits.data() + digits.size(), c, 16).ptr;
  return "\\x{" + std::string(digits.data(), end) + '}';
}

TOOLDECODE_INLINE std::string white_space_ranges(bool is_white) {
  std::string ranges;
  const auto add = [&](std::uint32_t first, std::uint32_t last) {
    ranges += hexadecimal_escape(first) + '-' + hexadecimal_escape(last);
  };
  std::uint32_t next = 0;  // after the last range of white space
  for (const auto& [first, last] : text::white_space_ranges) {
    if (is_white) add(first, last);
    if (!is_white && next < first) add(next, first - 1);
    next = last + 1;
  }
  if (!is_white) add(next, 0x10FFFF);
  return ranges;
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::string with_unicode_white_space(std::string_view pattern) {
  static const std::string white = detail::white_space_ranges(true);
  static const std::string other = detail::white_space_ranges(false);
  std::string result;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::string_view rest = pattern.substr(at);
    const std::size_t name_end  = rest.substr(0, 16).find(":]");  // of a POSIX class such as alpha
    std::size_t size            = 1;                              // of what is copied
    if (rest.starts_with("\\s") || rest.starts_with("\\S")) {
      const std::string& ranges = rest[1] == 's' ? white : other;
      result += in_class ? ranges : '[' + ranges + ']';
      at += 2;
      continue;
    }
    if (rest.starts_with("\\Q")) {
      size = rest.find("\\E");
    } else if (rest[0] == '\\') {
      size = 2;
    } else if (in_class && rest.starts_with("[:") && name_end != std::string_view::npos) {
      size = name_end + 2;
    } else if (in_class) {
      in_class = rest[0] != ']';
    } else if (rest[0] == '[') {
      // A bracket that closes nothing stands for itself.
      in_class = true;
      size     = rest.starts_with("[]") ? 2 : rest.starts_with("[^]") ? 3 : 1;
    }
    result += rest.substr(0, size);
    at += rest.substr(0, size).size();
  }
  return result;
}

}  // namespace tooldecode::vocabulary
