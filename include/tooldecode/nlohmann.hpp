/// \file
/// For programs that use nlohmann-json: JsonValue converts to and from its values.
#pragma once

#include <tooldecode/core/json_value.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// A JsonValue inside a value of nlohmann's, also of one that sorts its members.
template <class Json>
void to_json(Json& json, const JsonValue& value) {
  json = Json(value.json());
}

}  // namespace tooldecode
