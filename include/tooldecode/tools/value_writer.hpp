/// \file
/// Writers of values: JSON as Python's json.dumps writes it, Python literals as its repr does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/text/utf8.hpp>

#include <nlohmann/json_fwd.hpp>

namespace tooldecode::tools {

namespace detail {

/// Code points that `str.isprintable` calls not printable and that never will be: controls, format
/// characters, spaces other than U+0020, line ends and private use. Unassigned code points are left
/// out, since which ones they are depends on Python's version.
inline constexpr std::pair<std::uint32_t, std::uint32_t> unprintable[] = {
    {0x0, 0x1f},        {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},
    {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
    {0x8e2, 0x8e2},     {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},
    {0x2028, 0x202f},   {0x205f, 0x2064},   {0x2066, 0x206f},   {0x3000, 0x3000},
    {0xe000, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x13438}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0001, 0xe0001}, {0xe0020, 0xe007f}, {0xf0000, 0xffffd}, {0x100000, 0x10fffd},
};

bool is_printable(std::uint32_t point) noexcept;

void append_hexadecimal(std::string& text, std::uint32_t value, int digits);

text::CodePoint checked(const std::optional<text::CodePoint>& point);

}  // namespace detail

/// The shortest decimal digits that read back as a number, and the power of ten of the first.
struct ShortestDigits {
  std::string digits;  ///< without a point
  int exponent = 0;
};

/// The shortest digits of a number that is finite, whatever its sign.
[[nodiscard]] ShortestDigits shortest_digits(double value);

/// Appends a number as Python's `float.__repr__` writes it: the shortest digits that read back as
/// the same number, `5.0`, `1e-09`, `1e+16`.
///
/// \par Errors      Error{malformed_call} for infinities and NaN, which no literal can write
void append_float(std::string& text, double value);

/// Appends a string as `json.dumps(..., ensure_ascii=False)` writes it.
///
/// \par Errors      Error{malformed_call} where the string is not UTF-8
void append_json_string(std::string& text, std::string_view string);

/// Appends a string as Python's `repr` writes it, save that unassigned code points are not escaped.
///
/// \par Errors      Error{malformed_call} where the string is not UTF-8
void append_python_string(std::string& text, std::string_view string);

/// A value as `json.dumps(value, ensure_ascii=False)` writes it: `{"a": [1, 2.0]}`.
///
/// Members keep the order in which the value holds them.
///
/// \par Errors      Error{malformed_call} for what JSON cannot write, see append_float
[[nodiscard]] std::string write_json(const nlohmann::ordered_json& value);
/// The same of a value that sorts its members.
[[nodiscard]] std::string write_json(const nlohmann::json& value);

/// A value as Python's `repr` writes it: `{'a': [1, 2.0, None]}`.
///
/// \par Errors      Error{malformed_call} for what Python cannot write, see append_float
[[nodiscard]] std::string write_python_literal(const nlohmann::ordered_json& value);
/// The same of a value that sorts its members.
[[nodiscard]] std::string write_python_literal(const nlohmann::json& value);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/value_writer.ipp>
#endif
