/// \file
/// Removes Unicode white space from both ends of a text.
#pragma once

#include <cstdint>
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

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/white_space.ipp>
#endif
