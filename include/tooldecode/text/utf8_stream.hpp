/// \file
/// Utf8Stream: whole characters of bytes that come in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tooldecode/text/utf8.hpp>

namespace tooldecode::text {

/// Makes UTF-8 of bytes that come in any pieces: a character is given when it is complete, and each
/// byte that is part of none becomes U+FFFD. The result does not depend on the pieces.
///
/// \par Complexity  O(bytes)
/// \par Threads     a value; one thread at a time
class Utf8Stream {
 public:
  [[nodiscard]] std::string push(std::string_view bytes) {
    held_ += bytes;
    return take(false);
  }
  [[nodiscard]] std::string finish() { return take(true); }

 private:
  [[nodiscard]] std::string take(bool all) {
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
  // Whether the rest is a character without its last bytes.
  [[nodiscard]] bool may_go_on(std::size_t at) const {
    const std::string rest = held_.substr(at);
    for (const std::string_view ends :
         {"\x80", "\x80\x80", "\x80\x80\x80", "\xBF", "\xBF\x80", "\xBF\x80\x80"}) {
      const auto point = find_code_point(rest + std::string(ends), 0);
      if (point && point->bytes > rest.size()) return true;
    }
    return false;
  }

  std::string held_;
};

}  // namespace tooldecode::text
