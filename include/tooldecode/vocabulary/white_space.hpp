/// \file
/// White space of Unicode: at the ends of texts, and in patterns for PCRE2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// Whether a code point has the Unicode property White_Space.
bool is_white_space(std::uint32_t c) noexcept;

}  // namespace detail

/// Removes leading white space.
[[nodiscard]] std::string_view without_first_spaces(std::string_view text) noexcept;
/// Removes trailing white space.
[[nodiscard]] std::string_view without_last_spaces(std::string_view text) noexcept;

namespace detail {

/// A character of a pattern by its number, as `\x{2028}`.
std::string hexadecimal_escape(std::uint32_t c);
/// The characters that have the property White_Space, or those that do not, as ranges of a class.
std::string white_space_ranges(bool is_white);

}  // namespace detail

/// A valid pattern with `\s` and `\S` replaced by the characters of Unicode's White_Space, inside
/// classes too. PCRE2's `\s` also matches U+180E, which Oniguruma's and Rust's do not.
///
/// \par Complexity  O(size of the pattern)
/// \par Source      pcre2pattern(3), "Generic character types"
[[nodiscard]] std::string with_unicode_white_space(std::string_view pattern);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/white_space.ipp>
#endif
