/// \file
/// How strings, numbers and values are written in JSON (as by Python's json.dumps) and in Python.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/text/utf8.hpp>

namespace tooldecode::text {

namespace detail {

/// Code points that `str.isprintable` rejects and always will: controls, format characters, spaces
/// other than U+0020, line ends and private use. Unassigned code points are left out, since they
/// depend on Python's version.
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

/// Appends JSON's escape of a code point, beyond U+FFFF a pair: `\u00e9`, `\ud83d\ude00`.
void append_escape(std::string& text, std::uint32_t point);

CodePoint checked(const std::optional<CodePoint>& point);

}  // namespace detail

/// The shortest decimal digits that read back as a number, and the power of ten of the first digit.
struct ShortestDigits {
  std::string digits;  ///< without a point
  int exponent = 0;
};

/// The shortest digits of a finite number's magnitude.
[[nodiscard]] ShortestDigits shortest_digits(double value);

/// Appends a number as Python's `float.__repr__` writes it, with the shortest digits that read back
/// as the same number: `5.0`, `1e-09`, `1e+16`.
///
/// \par Errors      Error{malformed_call} for infinities and NaN, which no literal can write
void append_float(std::string& text, double value);

/// Appends a string as `json.dumps(..., ensure_ascii=False)` writes it.
///
/// \par Errors      Error{malformed_call} if the string is not UTF-8
void append_json_string(std::string& text, std::string_view string);

/// Appends a string as Python's `repr` writes it, except that unassigned code points are not
/// escaped.
///
/// \par Errors      Error{malformed_call} if the string is not UTF-8
void append_python_string(std::string& text, std::string_view string);

namespace detail {

/// How values are written; the languages differ only in words and strings.
struct ValueStyle {
  std::string_view yes, no, none;
  void (*append_string)(std::string&, std::string_view);
  std::string_view comma = ", ", colon = ": ";
  int indent = -1;
  bool any   = false;  // also writes what the language cannot, as null
};

/// Appends a quoted string of any bytes; U+FFFD replaces what is not UTF-8.
void append_any_string(std::string& text, std::string_view string);

/// Like append_any_string, in ASCII only.
void append_ascii_string(std::string& text, std::string_view string);

inline constexpr ValueStyle json_style{"true", "false", "null", append_json_string};
inline constexpr ValueStyle python_style{"True", "False", "None", append_python_string};

/// Appends values in one style.
template <class Value>
class ValueWriter {
 public:
  ValueWriter(std::string& text, const ValueStyle& style) : text_(text), style_(style) {}

  void value(const Value& value, int depth = 0) {
    switch (value.type()) {
      case Value::Type::null:
        text_.append(style_.none);
        return;
      case Value::Type::boolean:
        text_.append(value.template get<bool>() ? style_.yes : style_.no);
        return;
      case Value::Type::integer:
        text_.append(std::to_string(value.template get<std::int64_t>()));
        return;
      case Value::Type::unsigned_integer:
        text_.append(std::to_string(value.template get<std::uint64_t>()));
        return;
      case Value::Type::floating:
        if (style_.any && !std::isfinite(value.template get<double>())) {
          text_.append(style_.none);
        } else {
          append_float(text_, value.template get<double>());
        }
        return;
      case Value::Type::exact:
        text_.append(value.string());
        return;
      case Value::Type::string:
        style_.append_string(text_, value.string());
        return;
      case Value::Type::array:
        return all("[]", value.list(), depth,
                   [&](const Value& item) { this->value(item, depth + 1); });
      case Value::Type::object:
        return all("{}", value.items(), depth, [&](const auto& member) {
          style_.append_string(text_, member.first);
          text_.append(style_.colon);
          this->value(member.second, depth + 1);
        });
    }
  }

 private:
  template <class Range, class Each>
  void all(const char* brackets, const Range& range, int depth, const Each& each) {
    text_.push_back(brackets[0]);
    std::string_view separator;
    for (const auto& one : range) {
      text_.append(std::exchange(separator, style_.comma));
      line(depth + 1);
      each(one);
    }
    if (!range.empty()) line(depth);
    text_.push_back(brackets[1]);
  }
  void line(int depth) {
    if (style_.indent < 0) return;
    text_.push_back('\n');
    text_.append(static_cast<std::size_t>(depth * style_.indent), ' ');
  }

  std::string& text_;
  const ValueStyle& style_;
};

}  // namespace detail

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/value_text.ipp>
#endif
