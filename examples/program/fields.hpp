/// \file
/// Fields: the members of a JSON object of a request, each mistake with its place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/tools/document_readings.hpp>

#include <program/json.hpp>

namespace program {

/// Text of a JSON value; bytes that are no UTF-8 become U+FFFD.
inline std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A request that is not answered, as status and error object say.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const char* code, std::string param, const std::string& message)
      : std::runtime_error(message), status_(status), code_(code), param_(std::move(param)) {}

  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] Json json() const {
    const char* const type = status_ == 429   ? "rate_limit_error"
                             : status_ == 401 ? "authentication_error"
                             : status_ >= 500 ? "server_error"
                                              : "invalid_request_error";
    return {{"error",
             {{"message", what()},
              {"type", type},
              {"param", param_.empty() ? Json(nullptr) : Json(param_)},
              {"code", code_}}}};
  }

 private:
  int status_;
  const char* code_;
  std::string param_;
};

/// How places are written.
enum class Places {
  dotted,   ///< as OpenAI writes them: `messages[0].role`
  pointer,  ///< JSON pointers: `/0/params`
};

/// An object of a request and its place. A member that is null counts as absent.
class Fields {
 public:
  Fields(const Json& object, std::string place, Places places = Places::dotted)
      : object_(&object), place_(std::move(place)), places_(places) {
    if (!object.is_object()) fail("", "must be an object", "invalid_type");
  }

  [[nodiscard]] std::string place(std::string_view key) const {
    if (key.empty()) return place_;
    if (places_ == Places::pointer) return tooldecode::tools::extend_pointer(place_, key);
    return place_.empty() ? std::string(key) : place_ + '.' + std::string(key);
  }
  [[noreturn]] void fail(std::string_view key, const std::string& what,
                         const char* code = "invalid_value") const {
    const std::string where = place(key);
    throw ApiError(400, code, where, (where.empty() ? "the request" : where) + ' ' + what);
  }

  [[nodiscard]] const Json* find(std::string_view key) const {
    const auto found = object_->find(key);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] const Json& at(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) fail(key, "is required", "missing_required_parameter");
    return *value;
  }
  [[nodiscard]] Fields object(std::string_view key) const { return {at(key), place(key), places_}; }
  [[nodiscard]] const std::string& text(std::string_view key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(key, "must be a string", "invalid_type");
    return value.get_ref<const std::string&>();
  }
  [[nodiscard]] bool flag(std::string_view key) const {
    const Json* value = find(key);
    if (value != nullptr && !value->is_boolean()) fail(key, "must be a boolean", "invalid_type");
    return value != nullptr && value->get<bool>();
  }
  [[nodiscard]] std::optional<double> find_number(std::string_view key, double min,
                                                  double max) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) fail(key, "must be a number", "invalid_type");
    const auto number = value->get<double>();
    if (!(number >= min && number <= max)) {
      fail(key, "must be from " + json_text(min) + " to " + json_text(max));
    }
    return number;
  }
  [[nodiscard]] std::optional<std::int64_t> find_integer(std::string_view key,
                                                         std::int64_t min) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    const bool fits = value->is_number_integer() &&
                      !(value->is_number_unsigned() && value->get<std::uint64_t>() > 1ULL << 62);
    if (!fits) fail(key, "must be an integer of at most 62 bits", "invalid_type");
    if (value->get<std::int64_t>() < min) fail(key, "must be at least " + std::to_string(min));
    return value->get<std::int64_t>();
  }
  /// Each element of an array, as an object with its place.
  [[nodiscard]] std::vector<Fields> objects(std::string_view key) const {
    const Json& array = at(key);
    if (!array.is_array()) fail(key, "must be an array", "invalid_type");
    std::vector<Fields> elements;
    for (std::size_t i = 0; i < array.size(); ++i) {
      elements.emplace_back(array[i], place_of_element(key, i), places_);
    }
    return elements;
  }
  /// Nothing else may be here: what is not understood is not ignored.
  void allow(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : object_->items()) {
      if (value.is_null() || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      fail(key, "is not supported", "unsupported_parameter");
    }
  }
  /// A parameter that is known, and that only one value of is supported.
  void allow_only(std::string_view key, const Json& supported) const {
    const Json* value = find(key);
    if (value == nullptr || *value == supported) return;
    fail(key, "is supported as " + json_text(supported) + " only", "unsupported_value");
  }

 private:
  [[nodiscard]] std::string place_of_element(std::string_view key, std::size_t i) const {
    const std::string number = std::to_string(i);
    return place(key) + (places_ == Places::pointer ? '/' + number : '[' + number + ']');
  }

  const Json* object_;
  std::string place_;
  Places places_;
};

}  // namespace program
