/// \file
/// Code points in UTF-8: find_code_point, is_utf8, and Utf8Stream for text that arrives in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// A code point and its number of UTF-8 bytes.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes   = 0;
};

/// The code point at a byte of a text; nothing if the bytes there are not strict UTF-8 (overlong
/// forms, surrogates, values past U+10FFFF, truncated sequences).
[[nodiscard]] std::optional<CodePoint> find_code_point(std::string_view text,
                                                       std::size_t at) noexcept;

/// Whether a text is strict UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

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
#include <tooldecode/text/utf8.ipp>
#endif
