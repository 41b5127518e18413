/// \file
/// The marks in the grammar of an answer that say what its parts are.
#pragma once

#include <cstdint>

namespace tooldecode::tools::mark {

/// Marks from here on are these; below are those of arguments (`argument_tag`) and of tools.
inline constexpr std::uint32_t first = 0xFFFF'FF00;

/// Free text, perhaps with the delimiter that ends it.
inline constexpr std::uint32_t text = first;
/// Text that is a value of a schema.
inline constexpr std::uint32_t text_value = first + 1;
/// A block of reasoning, perhaps with the delimiter that ends it.
inline constexpr std::uint32_t reasoning = first + 2;
/// All arguments of a call, where they are one JSON object.
inline constexpr std::uint32_t arguments = first + 3;
/// One argument's value, and what of its delimiters belongs to it, where they stand one by one.
inline constexpr std::uint32_t argument = first + 4;
/// Calls.
inline constexpr std::uint32_t calls = ~std::uint32_t{0};

}  // namespace tooldecode::tools::mark
