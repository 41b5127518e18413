/// \file
/// Writers of values: JSON as Python's json.dumps writes it, Python literals as its repr does.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/utf8.hpp>

#include <nlohmann/json.hpp>

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

/// Values of both languages; they differ in words and strings only.
struct ValueStyle {
  std::string_view yes, no, none;
  void (*append_string)(std::string&, std::string_view);
};

template <class Json>
void append_value(std::string& text, const Json& value, const ValueStyle& style);

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

namespace detail {

template <class Json>
void append_value(std::string& text, const Json& value, const ValueStyle& style) {
  switch (value.type()) {
    case Json::value_t::boolean:
      text.append(value.template get<bool>() ? style.yes : style.no);
      return;
    case Json::value_t::number_integer:
      text.append(std::to_string(value.template get<std::int64_t>()));
      return;
    case Json::value_t::number_unsigned:
      text.append(std::to_string(value.template get<std::uint64_t>()));
      return;
    case Json::value_t::number_float:
      append_float(text, value.template get<double>());
      return;
    case Json::value_t::string:
      style.append_string(text, value.template get_ref<const std::string&>());
      return;
    case Json::value_t::array: {
      text.push_back('[');
      std::string_view separator;
      for (const auto& item : value) {
        text.append(std::exchange(separator, ", "));
        append_value(text, item, style);
      }
      text.push_back(']');
      return;
    }
    case Json::value_t::object: {
      text.push_back('{');
      std::string_view separator;
      for (const auto& [key, member] : value.items()) {
        text.append(std::exchange(separator, ", "));
        style.append_string(text, key);
        text.append(": ");
        append_value(text, member, style);
      }
      text.push_back('}');
      return;
    }
    case Json::value_t::binary:
      if constexpr (std::is_same_v<Json, text::ExactNumber::Json>) {
        if (text::ExactNumber::is(value)) {
          text.append(text::ExactNumber::text(value));
          return;
        }
      }
      [[fallthrough]];
    default:
      text.append(style.none);
      return;
  }
}

}  // namespace detail

/// A value as `json.dumps(value, ensure_ascii=False)` writes it: `{"a": [1, 2.0]}`.
///
/// Members keep the order in which the value holds them.
///
/// \par Errors      Error{malformed_call} for what JSON cannot write, see append_float
template <class Json>
[[nodiscard]] std::string write_json(const Json& value) {
  std::string text;
  detail::append_value(text, value, {"true", "false", "null", append_json_string});
  return text;
}

/// A value as Python's `repr` writes it: `{'a': [1, 2.0, None]}`.
///
/// \par Errors      Error{malformed_call} for what Python cannot write, see append_float
template <class Json>
[[nodiscard]] std::string write_python_literal(const Json& value) {
  std::string text;
  detail::append_value(text, value, {"True", "False", "None", append_python_string});
  return text;
}

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/value_writer.ipp>
#endif
