/// \file
/// find_code_point and is_utf8: strict UTF-8, one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/utf8.ipp>
#endif
