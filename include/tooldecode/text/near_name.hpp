/// \file
/// find_near_name: the known name that a name probably misspells.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// The edit distance of two words of at most 63 bytes: insertions, deletions, replacements and swaps
/// of neighbours. Letters of ASCII are equal in either case.
///
/// \par Complexity  O(product of the lengths)
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The first of the nearest names within `max_edits`; nullopt if there is none. A name of as many
/// bytes as edits is not near, because nothing of it would be left.
///
/// \par Complexity  O(bytes of the name x bytes of all names)
[[nodiscard]] std::optional<std::string_view> find_near_name(
    std::string_view name, std::span<const std::string_view> names, std::size_t max_edits);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/near_name.ipp>
#endif
