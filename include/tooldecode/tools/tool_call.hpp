/// \file
/// ToolCall: the name of a tool and the arguments it is called with, as a value.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/tools/canonical_json.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// The same value in the one form that all equal values share: keys sorted, and a number that is
/// integral written as an integer, so that 1, 1.0 and 1e0 are one value.
template <class Json>
[[nodiscard]] nlohmann::json canonical_value(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object: {
      nlohmann::json result = nlohmann::json::object();
      for (const auto& [key, member] : value.items()) result[key] = canonical_value(member);
      return result;
    }
    case Json::value_t::array: {
      nlohmann::json result = nlohmann::json::array();
      for (const auto& item : value) result.push_back(canonical_value(item));
      return result;
    }
    case Json::value_t::number_float: {
      const auto number = value.template get<double>();
      if (std::trunc(number) != number) return number;
      if (number >= -0x1p63 && number < 0x1p63) return static_cast<std::int64_t>(number);
      if (number >= 0 && number < 0x1p64) return static_cast<std::uint64_t>(number);
      return number;
    }
    case Json::value_t::number_integer:
      return value.template get<std::int64_t>();
    case Json::value_t::number_unsigned:
      return value.template get<std::uint64_t>();
    case Json::value_t::string:
      return value.template get_ref<const std::string&>();
    case Json::value_t::boolean:
      return value.template get<bool>();
    default:
      return nullptr;
  }
}

/// A call as a model means it: which tool, and what arguments.
///
/// Calls are equal when they mean the same: the order of keys does not count, 1 equals 1.0, true
/// does not equal 1. `arguments` keeps the order in which they were written.
///
/// \par Complexity  comparison and canonical text O(size of the arguments)
/// \par Threads     a value
/// \par Errors      Error{malformed_call} from `canonical_text`, see canonical_json
struct ToolCall {
  std::string name;
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();

  /// `{"arguments":{...},"name":"..."}` as canonical_json writes it: equal calls have equal texts.
  [[nodiscard]] std::string canonical_text() const {
    return canonical_json(nlohmann::ordered_json{{"name", name}, {"arguments", arguments}});
  }
  friend bool operator==(const ToolCall& a, const ToolCall& b) {
    return a.name == b.name && a.canonical_text() == b.canonical_text();
  }
};

}  // namespace tooldecode
