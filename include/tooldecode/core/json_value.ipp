/// \file
/// What json_value.hpp declares.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include <tooldecode/core/json_value.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

TOOLDECODE_INLINE JsonValue::JsonValue() noexcept = default;

TOOLDECODE_INLINE JsonValue::JsonValue(const nlohmann::ordered_json* value)
    : value_(std::make_unique<nlohmann::ordered_json>(*value)) {}

TOOLDECODE_INLINE JsonValue::JsonValue(const JsonValue& other)
    : value_(other.value_ ? std::make_unique<nlohmann::ordered_json>(*other.value_) : nullptr) {}

// What was moved from is null again.
TOOLDECODE_INLINE JsonValue::JsonValue(JsonValue&& other) noexcept = default;

TOOLDECODE_INLINE JsonValue& JsonValue::operator=(const JsonValue& other) {
  return *this = JsonValue(other);
}

TOOLDECODE_INLINE JsonValue& JsonValue::operator=(JsonValue&& other) noexcept = default;

TOOLDECODE_INLINE JsonValue::~JsonValue() = default;

TOOLDECODE_INLINE JsonValue JsonValue::object() {
  return nlohmann::ordered_json::object();
}

TOOLDECODE_INLINE std::string JsonValue::text() const {
  return json().dump();
}

TOOLDECODE_INLINE const nlohmann::ordered_json& JsonValue::json() const noexcept {
  static const nlohmann::ordered_json null;
  return value_ ? *value_ : null;
}

TOOLDECODE_INLINE nlohmann::ordered_json& JsonValue::json() {
  if (!value_) value_ = std::make_unique<nlohmann::ordered_json>();
  return *value_;
}

TOOLDECODE_INLINE void JsonValue::swap_with(nlohmann::ordered_json& value) {
  json().swap(value);
}

TOOLDECODE_INLINE bool JsonValue::equals(const nlohmann::ordered_json& other) const {
  return json() == other;
}

TOOLDECODE_INLINE void JsonValue::write(std::ostream& out) const {
  out << json();
}

}  // namespace tooldecode
