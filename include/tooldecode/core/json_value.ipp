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

TOOLDECODE_INLINE JsonValue::JsonValue() : value_(std::make_unique<nlohmann::ordered_json>()) {}

TOOLDECODE_INLINE JsonValue::JsonValue(const nlohmann::ordered_json* value)
    : value_(std::make_unique<nlohmann::ordered_json>(*value)) {}

TOOLDECODE_INLINE JsonValue::JsonValue(const JsonValue& other) : JsonValue(other.value_.get()) {}

// What was moved from is null again.
TOOLDECODE_INLINE JsonValue::JsonValue(JsonValue&& other) noexcept : JsonValue() {
  value_.swap(other.value_);
}

TOOLDECODE_INLINE JsonValue& JsonValue::operator=(const JsonValue& other) {
  *value_ = *other.value_;
  return *this;
}

TOOLDECODE_INLINE JsonValue& JsonValue::operator=(JsonValue&& other) noexcept {
  *value_ = std::move(*other.value_);
  return *this;
}

TOOLDECODE_INLINE JsonValue::~JsonValue() = default;

TOOLDECODE_INLINE JsonValue JsonValue::object() {
  return nlohmann::ordered_json::object();
}

TOOLDECODE_INLINE std::string JsonValue::text() const {
  return value_->dump();
}

TOOLDECODE_INLINE void JsonValue::swap_with(nlohmann::ordered_json& value) noexcept {
  value_->swap(value);
}

TOOLDECODE_INLINE bool JsonValue::equals(const nlohmann::ordered_json& other) const {
  return *value_ == other;
}

TOOLDECODE_INLINE void JsonValue::write(std::ostream& out) const {
  out << *value_;
}

}  // namespace tooldecode
