/// \file
/// without_match: the texts of a lexeme that contain no match of another one.
#pragma once

#include <cstdint>
#include <string_view>

#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

/// Where to look for a match.
enum class MatchAt : std::uint8_t { start, anywhere };

/// The texts of a lexeme that contain no text of another lexeme, at their start or anywhere. Units
/// are counted as before.
///
/// \par Complexity  O(states of the lexeme x reachable sets of pattern states x 256)
/// \par Errors      see BuildBudget
[[nodiscard]] Dfa without_match(const Dfa& text, const Dfa& pattern, MatchAt where);

/// The texts of a lexeme that do not contain these bytes literally.
///
/// \param bytes  not empty
[[nodiscard]] Dfa without_bytes(const Dfa& text, std::string_view bytes);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/without_match.ipp>
#endif
