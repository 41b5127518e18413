/// \file
/// What value_writer.hpp declares.
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
#include <tooldecode/tools/value_writer.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::tools::detail {

TOOLDECODE_INLINE bool is_printable(std::uint32_t point) noexcept {
  for (const auto& [first, last] : unprintable) {
    if (point <= last) return point < first;
  }
  return true;
}

TOOLDECODE_INLINE void append_hexadecimal(std::string& text, std::uint32_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) text.push_back("0123456789abcdef"[value >> (4 * i) & 15]);
}

TOOLDECODE_INLINE text::CodePoint checked(const std::optional<text::CodePoint>& point) {
  if (!point) throw Error(Errc::malformed_call, "", "a string that is not UTF-8 cannot be written");
  return *point;
}

}  // namespace tooldecode::tools::detail

namespace tooldecode::tools {

TOOLDECODE_INLINE ShortestDigits shortest_digits(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view written(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = written.find('e');
  std::string digits(written.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  return {std::move(digits), std::atoi(buffer.data() + e + 1)};
}

TOOLDECODE_INLINE void append_float(std::string& text, double value) {
  if (!std::isfinite(value)) {
    throw Error(Errc::malformed_call, "", "a number that is not finite cannot be written");
  }
  auto [digits, exponent] = shortest_digits(value);
  if (std::signbit(value)) text.push_back('-');
  if (exponent < -4 || exponent >= 16) {
    text.push_back(digits[0]);
    if (digits.size() > 1) text.append(".").append(digits, 1);
    text.append(exponent < 0 ? "e-" : "e+");
    if (std::abs(exponent) < 10) text.push_back('0');
    text.append(std::to_string(std::abs(exponent)));
  } else if (exponent < 0) {
    text.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() < whole) digits.append(whole - digits.size(), '0');
    text.append(digits, 0, whole).append(".");
    text.append(digits.size() > whole ? digits.substr(whole) : "0");
  }
}

TOOLDECODE_INLINE void append_json_string(std::string& text, std::string_view string) {
  constexpr std::string_view from = "\"\\\b\f\n\r\t";
  constexpr std::string_view to   = "\"\\bfnrt";
  const auto is_plain             = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
  };
  text.push_back('"');
  for (std::size_t at = 0; at < string.size();) {
    const std::size_t plain = at;
    while (at < string.size() && is_plain(string[at])) ++at;
    text.append(string.substr(plain, at - plain));
    if (at == string.size()) break;
    const text::CodePoint point = detail::checked(text::find_code_point(string, at));
    if (const auto i = from.find(string[at]); point.bytes == 1 && i != std::string_view::npos) {
      text.push_back('\\');
      text.push_back(to[i]);
    } else if (point.value < 0x20) {
      text.append("\\u");
      detail::append_hexadecimal(text, point.value, 4);
    } else {
      text.append(string.substr(at, point.bytes));
    }
    at += point.bytes;
  }
  text.push_back('"');
}

TOOLDECODE_INLINE void append_python_string(std::string& text, std::string_view string) {
  const bool apostrophe = string.find('\'') != std::string_view::npos;
  const char quote      = apostrophe && string.find('"') == std::string_view::npos ? '"' : '\'';
  text.push_back(quote);
  for (std::size_t at = 0; at < string.size();) {
    const text::CodePoint point = detail::checked(text::find_code_point(string, at));
    const char c                = string[at];
    if (point.value == '\n' || point.value == '\r' || point.value == '\t') {
      text.append(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (point.value == '\\' || (point.bytes == 1 && c == quote)) {
      text.push_back('\\');
      text.push_back(c);
    } else if (detail::is_printable(point.value)) {
      text.append(string.substr(at, point.bytes));
    } else {
      const bool x = point.value < 0x100;
      const bool u = point.value < 0x10000;
      text.append(x ? "\\x" : u ? "\\u" : "\\U");
      detail::append_hexadecimal(text, point.value, x ? 2 : u ? 4 : 8);
    }
    at += point.bytes;
  }
  text.push_back(quote);
}

}  // namespace tooldecode::tools

namespace tooldecode::tools {

namespace detail {

/// Values of both languages; they differ in words and strings only.
struct ValueStyle {
  std::string_view yes, no, none;
  void (*append_string)(std::string&, std::string_view);
};

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

namespace detail {

inline constexpr ValueStyle json_style{"true", "false", "null", append_json_string};
inline constexpr ValueStyle python_style{"True", "False", "None", append_python_string};

template <class Json>
std::string write_value(const Json& value, const ValueStyle& style) {
  std::string text;
  append_value(text, value, style);
  return text;
}

}  // namespace detail

TOOLDECODE_INLINE std::string write_json(const nlohmann::ordered_json& value) {
  return detail::write_value(value, detail::json_style);
}

TOOLDECODE_INLINE std::string write_json(const nlohmann::json& value) {
  return detail::write_value(value, detail::json_style);
}

TOOLDECODE_INLINE std::string write_python_literal(const nlohmann::ordered_json& value) {
  return detail::write_value(value, detail::python_style);
}

TOOLDECODE_INLINE std::string write_python_literal(const nlohmann::json& value) {
  return detail::write_value(value, detail::python_style);
}

}  // namespace tooldecode::tools
