/// \file
/// Marks in the grammar of an answer that identify its parts.
#pragma once

#include <cstdint>

namespace tooldecode::formats::mark {

/// The first of these marks; smaller values mark arguments (`argument_tag`) and tools.
inline constexpr std::uint32_t first = 0xFFFF'FF00;

/// Free text, with or without the delimiter that ends it.
inline constexpr std::uint32_t text = first;
/// Text that is a value of a schema.
inline constexpr std::uint32_t text_value = first + 1;
/// A reasoning block, with or without the delimiter that ends it.
inline constexpr std::uint32_t reasoning = first + 2;
/// All arguments of a call, where they are one JSON object.
inline constexpr std::uint32_t arguments = first + 3;
/// One argument's value and the delimiters that belong to it, where arguments are written one by
/// one.
inline constexpr std::uint32_t argument = first + 4;
/// Text that goes on after a delimiter that opened no call; the delimiter is text then.
inline constexpr std::uint32_t more_text = first + 5;
/// Calls in a format of a FormatSet: this plus the format's index, which is less than 128.
inline constexpr std::uint32_t format_of_set = first + 64;
/// Calls.
inline constexpr std::uint32_t calls = ~std::uint32_t{0};

}  // namespace tooldecode::formats::mark
