/// \file
/// Document numbers that fit neither a double nor a 64-bit integer, kept as text.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode::text {

namespace detail {

template <class Integer>
std::optional<Integer> find_integer(const std::string& text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace detail

/// The value of a JSON number: a 64-bit integer if possible, else the nearest double; nothing if
/// that is infinite.
///
/// \par Complexity  O(digits)
/// \par Errors      std::bad_alloc
[[nodiscard]] std::optional<JsonValue> find_number(std::string text);

/// Handles document numbers such as 18446744073709551617, stored as JsonValue::exact. Schemas read
/// them, and writers write them unchanged.
///
/// \par Complexity  O(digits)
struct ExactNumber {
  using Json = JsonValue;

  /// `read`, the result of find_number, if it is the same number; otherwise the text as an exact
  /// number.
  [[nodiscard]] static Json keep(std::string text, Json read);
  [[nodiscard]] static bool is_number(const Json& value);
  [[nodiscard]] static bool is_in(const Json& value);
  /// The document with every number as find_number returns it: rounded.
  [[nodiscard]] static Json rounded(Json value);
  /// The value as the readers of calls return it: rounded, except integers.
  [[nodiscard]] static Json as_argument(Json value);

 private:
  static void round(Json& value, bool integers);
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/exact_number.ipp>
#endif
