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
  [[nodiscard]] std::string push(std::string_view bytes);
  [[nodiscard]] std::string finish() { return take(true); }

 private:
  [[nodiscard]] std::string take(bool all);
  // Whether the rest is a character without its last bytes.
  [[nodiscard]] bool may_go_on(std::size_t at) const;

  std::string held_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/utf8_stream.ipp>
#endif
