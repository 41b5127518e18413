/// \file
/// Definitions of white_space.hpp.
#pragma once

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
