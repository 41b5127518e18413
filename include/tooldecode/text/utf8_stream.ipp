/// \file
/// Definitions of utf8_stream.hpp.
#pragma once

#include <tooldecode/text/utf8_stream.hpp>

namespace tooldecode::text {

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
