#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/decimal.hpp>
#include <tooldecode/text/exact_number.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::optional<JsonValue> find_number(std::string text) {
  if (text.starts_with('-')) {
    if (const auto value = detail::find_integer<std::int64_t>(text)) return JsonValue(*value);
  } else if (const auto value = detail::find_integer<std::uint64_t>(text)) {
    return JsonValue(*value);
  }
  const auto value = JsonValue::exact(std::move(text)).get<double>();
  if (!std::isfinite(value)) return std::nullopt;
  return JsonValue(value);
}

TOOLDECODE_INLINE ExactNumber::Json ExactNumber::keep(std::string text, Json read) {
  // A double holds every number of 15 digits and prints the same digits.
  if (!read.is_number_float()) return read;
  if (text.size() <= 15 && text.find_first_of("eE") == text.npos) return read;
  try {
    if (Decimal::parse(text) == Decimal::parse(read.text())) return read;
  } catch (const Error&) {
    // more digits than a schema allows: the schema's keyword reports that
  }
  return Json::exact(std::move(text));
}

TOOLDECODE_INLINE bool ExactNumber::is_in(const Json& value) {
  if (!value.is_structured()) return value.is_exact();
  return std::any_of(value.begin(), value.end(), [](const Json& one) { return is_in(one); });
}

TOOLDECODE_INLINE ExactNumber::Json ExactNumber::rounded(Json value) {
  if (is_in(value)) round(value, true);
  return value;
}

TOOLDECODE_INLINE ExactNumber::Json ExactNumber::as_argument(Json value) {
  if (is_in(value)) round(value, false);
  return value;
}

TOOLDECODE_INLINE void ExactNumber::round(Json& value, bool integers) {
  if (value.is_exact()) {
    const bool is_integer = value.string().find_first_of(".eE") == std::string::npos;
    if (integers || !is_integer) value = find_number(value.string()).value_or(Json());
  } else if (value.is_structured()) {
    for (Json& member : value) round(member, integers);
  }
}

TOOLDECODE_INLINE bool ExactNumber::is_number(const Json& value) {
  return value.is_number() || value.is_exact();
}

}  // namespace tooldecode::text
