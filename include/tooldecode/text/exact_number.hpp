/// \file
/// Numbers of documents that neither a double nor an integer of 64 bits holds: kept as their text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/decimal.hpp>
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

/// The value of a number's text in JSON: an integer of 64 bits where it is one and fits, else the
/// nearest double; nothing where that is infinite.
///
/// \par Complexity  O(digits)
/// \par Errors      std::bad_alloc
[[nodiscard]] std::optional<JsonValue> find_number(std::string text);

/// Numbers of documents such as 18446744073709551617: JsonValue::exact, which schemas read and
/// writers write as they stand.
///
/// \par Complexity  O(digits)
struct ExactNumber {
  using Json = JsonValue;

  /// The value of a number's text: what find_number read where that is the same number.
  [[nodiscard]] static Json keep(std::string text, Json read);
  /// Whether a value is a number, exact or not.
  [[nodiscard]] static bool is_number(const Json& value);
  /// Whether a document has an exact number.
  [[nodiscard]] static bool is_in(const Json& value);
  /// The same document with every number as find_number reads it: rounded.
  [[nodiscard]] static Json rounded(Json value);

 private:
  static void round(Json& value);
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/exact_number.ipp>
#endif
