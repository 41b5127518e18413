/// \file
/// LinePlace: a byte of a text as line and column.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tooldecode {

/// A place in a text, for people; columns count UTF-8 characters.
struct LinePlace {
  std::size_t line   = 1;  ///< from 1
  std::size_t column = 1;  ///< from 1
  std::size_t begin  = 0;  ///< the byte that the line begins at

  /// The place of a byte; `at` may be the text's length.
  [[nodiscard]] static LinePlace of(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, at);
    const std::size_t begin       = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto is_inner           = [](char c) { return (c & 0xC0) == 0x80; };
    const auto lines              = std::count(before.begin(), before.end(), '\n');
    const std::string_view in     = before.substr(begin);
    const auto inner              = std::count_if(in.begin(), in.end(), is_inner);
    return {static_cast<std::size_t>(lines) + 1, in.size() - static_cast<std::size_t>(inner) + 1,
            begin};
  }
};

}  // namespace tooldecode
