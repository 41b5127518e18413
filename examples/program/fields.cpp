#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/near_name.hpp>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

std::string json_text(const Json& value) {
  return value.text();
}

ApiError::ApiError(int status, const char* code, std::string param, const std::string& message)
    : std::runtime_error(message), status_(status), code_(code), param_(std::move(param)) {}

Json ApiError::json() const {
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

void throw_stopping() {
  throw ApiError(503, "stopping", "", "the server is being stopped");
}

std::string nearest_hint(std::string_view name, std::span<const std::string_view> names) {
  const auto nearest = tooldecode::text::find_near_name(name, names, 1 + name.size() / 4);
  return nearest ? "; the nearest name that is known is " + std::string(*nearest) : "";
}

Fields::Fields(const Json& object, std::string place, Places places)
    : object_(&object), place_(std::move(place)), places_(places) {
  if (!object.is_object()) fail("", "must be an object", "invalid_type");
}

std::string Fields::place(std::string_view key) const {
  if (key.empty()) return place_;
  if (places_ == Places::pointer) return tooldecode::text::extend_pointer(place_, key);
  return place_.empty() ? std::string(key) : place_ + '.' + std::string(key);
}

void Fields::fail(std::string_view key, const std::string& what, const char* code) const {
  const std::string where = place(key);
  throw ApiError(400, code, where, (where.empty() ? "the request" : where) + ' ' + what);
}

const Json* Fields::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::at(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "is required", "missing_required_parameter");
  return *value;
}

const std::string& Fields::text(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_string()) fail(key, "must be a string", "invalid_type");
  return value.string();
}

bool Fields::flag(std::string_view key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_boolean()) fail(key, "must be a boolean", "invalid_type");
  return value != nullptr && value->get<bool>();
}

std::optional<double> Fields::find_number(std::string_view key, double min, double max) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(key, "must be a number", "invalid_type");
  const auto number = value->get<double>();
  if (!(number >= min && number <= max)) {
    fail(key, "must be from " + json_text(min) + " to " + json_text(max));
  }
  return number;
}

std::optional<std::int64_t> Fields::find_integer(std::string_view key, std::int64_t min) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<std::uint64_t>() > 1ULL << 62);
  if (!fits) fail(key, "must be an integer of at most 62 bits", "invalid_type");
  if (value->get<std::int64_t>() < min) fail(key, "must be at least " + std::to_string(min));
  return value->get<std::int64_t>();
}

std::vector<Fields> Fields::objects(std::string_view key) const {
  const Json& array = at(key);
  if (!array.is_array()) fail(key, "must be an array", "invalid_type");
  std::vector<Fields> elements;
  for (std::size_t i = 0; i < array.size(); ++i) {
    elements.emplace_back(array[i], place_of_element(key, i), places_);
  }
  return elements;
}

void Fields::allow(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, value] : object_->items()) {
    if (value.is_null() || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    refuse(key, {keys.begin(), keys.size()});
  }
}

void Fields::allow(std::initializer_list<std::string_view> keys,
                   std::vector<std::string>& ignored) const {
  constexpr std::string_view unseen[] = {
      "cache_control",   "extra_content",    "id", "provider_specific_fields", "reasoning_details",
      "thinking_blocks", "thought_signature"};
  for (const auto& [key, value] : object_->items()) {
    if (value.is_null() || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    if (std::find(std::begin(unseen), std::end(unseen), key) == std::end(unseen)) {
      std::vector<std::string_view> known(keys);
      known.insert(known.end(), std::begin(unseen), std::end(unseen));
      refuse(key, known);
    }
    std::string where;
    bool in_index = false;
    for (const char c : place(key)) {
      if (c == ']') in_index = false;
      if (!in_index) where += c;
      if (c == '[') in_index = true;
    }
    if (std::find(ignored.begin(), ignored.end(), where) == ignored.end()) {
      ignored.push_back(std::move(where));
    }
  }
}

void Fields::refuse(std::string_view key, std::span<const std::string_view> known) const {
  fail(key, "is not supported" + nearest_hint(key, known), "unsupported_parameter");
}

void Fields::allow_only(std::string_view key, const Json& supported) const {
  const Json* value = find(key);
  if (value == nullptr || *value == supported) return;
  fail(key, "is supported as " + json_text(supported) + " only", "unsupported_value");
}

std::string Fields::place_of_element(std::string_view key, std::size_t i) const {
  const std::string number = std::to_string(i);
  return place(key) + (places_ == Places::pointer ? '/' + number : '[' + number + ']');
}

}  // namespace program
