/// \file
/// without_match: the texts of a lexeme that hold no match of another one.
#pragma once

#include <cstdint>
#include <string_view>

#include <tooldecode/core/config.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

/// Where a pattern's match is looked for.
enum class MatchAt : std::uint8_t { start, anywhere };

/// Those texts of a lexeme that hold no text of another one at their start, or anywhere. Units are
/// counted as before.
///
/// \par Complexity  O(states of the lexeme x sets of the pattern's states that are reached x 256)
/// \par Errors      see BuildBudget
[[nodiscard]] Dfa without_match(const Dfa& text, const Dfa& pattern, MatchAt where);

/// Those texts of a lexeme that do not hold some bytes as they are written.
///
/// \param bytes  not empty
[[nodiscard]] Dfa without_bytes(const Dfa& text, std::string_view bytes);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/without_match.ipp>
#endif
