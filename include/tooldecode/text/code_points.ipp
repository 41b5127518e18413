#pragma once

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/utf8.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE CodePointSet::CodePointSet(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (const auto& [first, last] : ranges) {
    append(first, std::min<char32_t>(last, 0xD7FF));
    append(std::max<char32_t>(first, 0xE000), std::min(last, last_code_point));
  }
}

TOOLDECODE_INLINE bool CodePointSet::contains(char32_t c) const noexcept {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), c,
                       [](char32_t value, const Range& range) { return value < range.first; });
  return after != ranges_.begin() && c <= (after - 1)->second;
}

TOOLDECODE_INLINE void CodePointSet::append(char32_t first, char32_t last) {
  if (first > last) return;
  if (!ranges_.empty() && first <= ranges_.back().second + 1) {
    ranges_.back().second = std::max(ranges_.back().second, last);
  } else {
    ranges_.emplace_back(first, last);
  }
}

TOOLDECODE_INLINE void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

TOOLDECODE_INLINE std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<CodePoint> point = find_code_point(text, at);
    result.push_back(point ? point->value : 0xFFFD);
    at += point ? point->bytes : 1;
  }
  return result;
}

}  // namespace tooldecode::text
