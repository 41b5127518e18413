#pragma once

#include <array>
#include <charconv>
#include <cstdlib>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/value_text.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE bool is_printable(std::uint32_t point) noexcept {
  for (const auto& [first, last] : unprintable) {
    if (point <= last) return point < first;
  }
  return true;
}

TOOLDECODE_INLINE void append_hexadecimal(std::string& text, std::uint32_t value, int digits) {
  for (int i = digits - 1; i >= 0; --i) text.push_back("0123456789abcdef"[value >> (4 * i) & 15]);
}

TOOLDECODE_INLINE CodePoint checked(const std::optional<CodePoint>& point) {
  if (!point) throw Error(Errc::malformed_call, "", "a string that is not UTF-8 cannot be written");
  return *point;
}

}  // namespace tooldecode::text::detail

namespace tooldecode::text {

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
    const CodePoint point = detail::checked(find_code_point(string, at));
    if (const auto i = from.find(string[at]); point.bytes == 1 && i != std::string_view::npos) {
      text.push_back('\\');
      text.push_back(to[i]);
    } else if (point.value < 0x20) {
      detail::append_escape(text, point.value);
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
    const CodePoint point = detail::checked(find_code_point(string, at));
    const char c          = string[at];
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

}  // namespace tooldecode::text

namespace tooldecode::text::detail {

TOOLDECODE_INLINE void append_escape(std::string& text, std::uint32_t point) {
  if (point >= 0x10000) {
    append_escape(text, 0xD800 + ((point - 0x10000) >> 10));
    point = 0xDC00 + (point & 0x3FF);
  }
  text.append("\\u");
  append_hexadecimal(text, point, 4);
}

TOOLDECODE_INLINE void append_any_string(std::string& text, std::string_view string) {
  if (is_utf8(string)) return append_json_string(text, string);
  std::string valid;
  for (std::size_t at = 0; at < string.size();) {
    const auto point = find_code_point(string, at);
    valid.append(point ? string.substr(at, point->bytes) : "\xEF\xBF\xBD");
    at += point ? point->bytes : 1;
  }
  append_json_string(text, valid);
}

TOOLDECODE_INLINE void append_ascii_string(std::string& text, std::string_view string) {
  std::string whole;
  append_any_string(whole, string);
  for (std::size_t at = 0; at < whole.size();) {
    const auto [point, bytes] = checked(find_code_point(whole, at));
    at += bytes;
    if (point < 0x7F) {
      text.push_back(static_cast<char>(point));
      continue;
    }
    append_escape(text, point);
  }
}

}  // namespace tooldecode::text::detail
