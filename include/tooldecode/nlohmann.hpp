/// \file
/// Converts JsonValue to and from nlohmann::json.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

namespace detail {

template <class Json>
JsonValue read_nlohmann(const Json& value, std::size_t depth) {
  if (depth > text::ValueReader::max_depth) {
    throw Error(Errc::limit_exceeded, "",
                "values are nested deeper than " + std::to_string(text::ValueReader::max_depth) +
                    " levels");
  }
  switch (value.type()) {
    case Json::value_t::boolean:
      return value.template get<bool>();
    case Json::value_t::number_integer:
      return value.template get<std::int64_t>();
    case Json::value_t::number_unsigned:
      return value.template get<std::uint64_t>();
    case Json::value_t::number_float:
      return value.template get<double>();
    case Json::value_t::string:
      return value.template get_ref<const std::string&>();
    case Json::value_t::array: {
      JsonValue::Array items;
      items.reserve(value.size());
      for (const Json& item : value) items.push_back(read_nlohmann(item, depth + 1));
      return items;
    }
    case Json::value_t::object: {
      JsonValue::Object members;
      members.reserve(value.size());
      for (const auto& member : value.items()) {
        members.emplace_back(member.key(), read_nlohmann(member.value(), depth + 1));
      }
      return members;
    }
    default:
      return nullptr;
  }
}

}  // namespace detail

/// Converts an nlohmann::ordered_json to a JsonValue. Binary values become null.
///
/// \par Complexity  O(size)
/// \par Errors      Error{limit_exceeded} if values are nested deeper than documents may be
template <>
struct JsonConversion<nlohmann::ordered_json> {
  static JsonValue read(const nlohmann::ordered_json& value) {
    return detail::read_nlohmann(value, 0);
  }
};
/// Converts an nlohmann::json, whose members are sorted.
template <>
struct JsonConversion<nlohmann::json> {
  static JsonValue read(const nlohmann::json& value) { return detail::read_nlohmann(value, 0); }
};

/// Converts a JsonValue to nlohmann's type. A number that fits neither 64 bits nor a double becomes
/// the nearest double.
///
/// \par Complexity  O(size)
template <class Json>
  requires(std::same_as<Json, nlohmann::ordered_json> || std::same_as<Json, nlohmann::json>)
void to_json(Json& json, const JsonValue& value) {
  switch (value.type()) {
    case JsonValue::Type::null:
      json = nullptr;
      return;
    case JsonValue::Type::boolean:
      json = value.get<bool>();
      return;
    case JsonValue::Type::integer:
      json = value.get<std::int64_t>();
      return;
    case JsonValue::Type::unsigned_integer:
      json = value.get<std::uint64_t>();
      return;
    case JsonValue::Type::floating:
      json = value.get<double>();
      return;
    case JsonValue::Type::exact:
      json = Json::parse(value.string(), nullptr, false);
      return;
    case JsonValue::Type::string:
      json = value.string();
      return;
    case JsonValue::Type::array:
      json = Json::array();
      for (const JsonValue& item : value) to_json(json.emplace_back(), item);
      return;
    case JsonValue::Type::object:
      json = Json::object();
      for (const auto& [key, member] : value.items()) to_json(json[key], member);
  }
}

/// Compares values of the two libraries.
template <class Json>
  requires(std::same_as<Json, nlohmann::ordered_json> || std::same_as<Json, nlohmann::json>)
bool operator==(const JsonValue& a, const Json& b) {
  return a == JsonValue(b);
}

}  // namespace tooldecode
