/// \file
/// Numbers of documents that neither a double nor an integer of 64 bits holds: kept as their text.
#pragma once

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/decimal.hpp>

#include <nlohmann/json.hpp>

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

/// The value of a number's text in JSON, as nlohmann reads it: an integer of 64 bits where it is
/// one and fits, else the nearest double; nothing where that is infinite.
///
/// By itself: for the sake of this alone nlohmann's parser would be compiled.
///
/// \par Complexity  O(digits)
/// \par Errors      std::bad_alloc
[[nodiscard]] inline std::optional<nlohmann::ordered_json> find_number(std::string text) {
  using Json = nlohmann::ordered_json;
  if (text.starts_with('-')) {
    if (const auto value = detail::find_integer<std::int64_t>(text)) return Json(*value);
  } else if (const auto value = detail::find_integer<std::uint64_t>(text)) {
    return Json(*value);
  }
  // strtod's decimal point is the locale's.
  if (const char* point = std::localeconv()->decimal_point; *point != '\0') {
    std::replace(text.begin(), text.end(), '.', *point);
  }
  const double value = std::strtod(text.c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return Json(value);
}

/// What stands in a document for the number 18446744073709551617: a binary value, of a type of its
/// own, that has the number's text. It is no string, which a schema could mean, and dumps as none;
/// `write_json` and `canonical_json` write the number.
///
/// \par Complexity  O(digits)
struct ExactNumber {
  using Json = nlohmann::ordered_json;

  static constexpr std::uint8_t subtype = 'n';

  /// The value of a number's text: as nlohmann reads it where that is the same number.
  ///
  /// \param read  what nlohmann has read
  [[nodiscard]] static Json keep(std::string text, Json read) {
    // Doubles hold every number of 15 digits, and are written back as it.
    if (!read.is_number_float()) return read;
    if (text.size() <= 15 && text.find_first_of("eE") == text.npos) return read;
    try {
      if (Decimal::parse(text) == Decimal::parse(read.dump())) return read;
    } catch (const Error&) {
      // more digits than a schema may have, which is for the schema's keyword to say
    }
    return Json::binary(Json::binary_t::container_type(text.begin(), text.end()), subtype);
  }
  [[nodiscard]] static bool is(const Json& value) {
    return value.is_binary() && value.get_binary().has_subtype() &&
           value.get_binary().subtype() == subtype;
  }
  /// The text of a number of either kind.
  [[nodiscard]] static std::string text(const Json& value) {
    if (!is(value)) return value.dump();
    const auto& bytes = value.get_binary();
    return {bytes.begin(), bytes.end()};
  }
  /// Whether a value is a number of either kind.
  [[nodiscard]] static bool is_number(const Json& value) { return value.is_number() || is(value); }
  /// Whether a document has such a number.
  [[nodiscard]] static bool is_in(const Json& value) {
    if (!value.is_structured()) return is(value);
    return std::any_of(value.begin(), value.end(), [](const Json& one) { return is_in(one); });
  }
  /// The same document with every number as nlohmann reads it: rounded.
  [[nodiscard]] static Json rounded(Json value) {
    if (is_in(value)) round(value);
    return value;
  }

 private:
  static void round(Json& value) {
    if (is(value)) {
      value = find_number(text(value)).value_or(Json());
    } else if (value.is_structured()) {
      for (Json& member : value) round(member);
    }
  }
};

}  // namespace tooldecode::text
