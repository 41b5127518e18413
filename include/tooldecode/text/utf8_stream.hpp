/// \file
/// Utf8Stream: assembles whole characters from streamed bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tooldecode/text/utf8.hpp>

namespace tooldecode::text {

/// Converts streamed bytes to UTF-8. It returns a character once it is complete; each byte that is
/// part of none becomes U+FFFD. The result does not depend on the pieces.
///
/// \par Complexity  O(bytes)
/// \par Threads     a value; one thread at a time
class Utf8Stream {
 public:
  [[nodiscard]] std::string push(std::string_view bytes);
  [[nodiscard]] std::string finish() { return take(true); }

 private:
  [[nodiscard]] std::string take(bool all);
  // Whether the rest is a truncated character.
  [[nodiscard]] bool may_go_on(std::size_t at) const;

  std::string held_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/utf8_stream.ipp>
#endif
