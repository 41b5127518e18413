/// \file
/// What exact_number.hpp declares.
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
#include <tooldecode/text/exact_number.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::optional<nlohmann::ordered_json> find_number(std::string text) {
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

TOOLDECODE_INLINE ExactNumber::Json ExactNumber::keep(std::string text, Json read) {
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

TOOLDECODE_INLINE bool ExactNumber::is(const Json& value) {
  return value.is_binary() && value.get_binary().has_subtype() &&
         value.get_binary().subtype() == subtype;
}

TOOLDECODE_INLINE std::string ExactNumber::text(const Json& value) {
  if (!is(value)) return value.dump();
  const auto& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

TOOLDECODE_INLINE bool ExactNumber::is_in(const Json& value) {
  if (!value.is_structured()) return is(value);
  return std::any_of(value.begin(), value.end(), [](const Json& one) { return is_in(one); });
}

TOOLDECODE_INLINE ExactNumber::Json ExactNumber::rounded(Json value) {
  if (is_in(value)) round(value);
  return value;
}

TOOLDECODE_INLINE void ExactNumber::round(Json& value) {
  if (is(value)) {
    value = find_number(text(value)).value_or(Json());
  } else if (value.is_structured()) {
    for (Json& member : value) round(member);
  }
}

}  // namespace tooldecode::text

namespace tooldecode::text {

TOOLDECODE_INLINE bool ExactNumber::is_number(const Json& value) {
  return value.is_number() || is(value);
}

}  // namespace tooldecode::text
