#pragma once

#include <tooldecode/text/utf8.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::optional<CodePoint> find_code_point(std::string_view text,
                                                           std::size_t at) noexcept {
  if (at >= text.size()) return std::nullopt;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t lead = byte(at);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < bytes) return std::nullopt;
  std::uint32_t value = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  const bool overlong  = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return std::nullopt;
  return CodePoint{value, bytes};
}

TOOLDECODE_INLINE bool is_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<CodePoint> point = find_code_point(text, at);
    if (!point) return false;
    at += point->bytes;
  }
  return true;
}

TOOLDECODE_INLINE std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  return take(false);
}

TOOLDECODE_INLINE std::string Utf8Stream::take(bool all) {
  std::string text;
  std::size_t at = 0;
  while (at < held_.size()) {
    const auto point = find_code_point(held_, at);
    if (!point && !all && may_go_on(at)) break;
    text += point ? std::string_view(held_).substr(at, point->bytes) : "\xEF\xBF\xBD";
    at += point ? point->bytes : 1;
  }
  held_.erase(0, at);
  return text;
}

TOOLDECODE_INLINE bool Utf8Stream::may_go_on(std::size_t at) const {
  const std::string rest = held_.substr(at);
  for (const std::string_view ends :
       {"\x80", "\x80\x80", "\x80\x80\x80", "\xBF", "\xBF\x80", "\xBF\x80\x80"}) {
    const auto point = find_code_point(rest + std::string(ends), 0);
    if (point && point->bytes > rest.size()) return true;
  }
  return false;
}

}  // namespace tooldecode::text
