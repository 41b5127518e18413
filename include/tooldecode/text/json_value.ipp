#pragma once

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <ostream>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_text.hpp>

namespace tooldecode {

TOOLDECODE_INLINE JsonValue::JsonValue(std::string value) {
  held_.string = new std::string(std::move(value));
  type_        = Type::string;
}

TOOLDECODE_INLINE JsonValue::JsonValue(std::string_view value) : JsonValue(std::string(value)) {}

TOOLDECODE_INLINE JsonValue::JsonValue(const char* value) : JsonValue(std::string(value)) {}

TOOLDECODE_INLINE JsonValue::JsonValue(Array items) {
  held_.array = new Array(std::move(items));
  type_       = Type::array;
}

TOOLDECODE_INLINE JsonValue::JsonValue(Object members) {
  held_.object = new Object(std::move(members));
  type_        = Type::object;
}

TOOLDECODE_INLINE JsonValue::JsonValue(std::initializer_list<JsonValue> list) {
  const bool pairs = std::all_of(list.begin(), list.end(), [](const JsonValue& one) {
    return one.is_array() && one.size() == 2 && one.front().is_string();
  });
  pairs ? * this = object(list) : * this = Array(list);
}

TOOLDECODE_INLINE JsonValue::JsonValue(const JsonValue& other) {
  switch (other.type_) {
    case Type::exact:
    case Type::string:
      held_.string = new std::string(*other.held_.string);
      break;
    case Type::array:
      held_.array = new Array(*other.held_.array);
      break;
    case Type::object:
      held_.object = new Object(*other.held_.object);
      break;
    default:
      held_ = other.held_;
  }
  type_ = other.type_;
}

TOOLDECODE_INLINE JsonValue& JsonValue::operator=(const JsonValue& other) {
  return *this = JsonValue(other);
}

TOOLDECODE_INLINE JsonValue& JsonValue::operator=(JsonValue&& other) noexcept {
  JsonValue taken(std::move(other));  // it may be a part of this value
  swap(taken);
  return *this;
}

TOOLDECODE_INLINE void JsonValue::destroy() noexcept {
  switch (type_) {
    case Type::exact:
    case Type::string:
      delete held_.string;
      break;
    case Type::array:
      delete held_.array;
      break;
    case Type::object:
      delete held_.object;
      break;
    default:
      break;
  }
}

TOOLDECODE_INLINE JsonValue JsonValue::array(std::initializer_list<JsonValue> list) {
  return Array(list);
}

TOOLDECODE_INLINE JsonValue JsonValue::object(std::initializer_list<JsonValue> list) {
  JsonValue result = Object();
  for (const JsonValue& pair : list) result[pair.at(0).string()] = pair.at(1);
  return result;
}

TOOLDECODE_INLINE JsonValue JsonValue::exact(std::string number) {
  JsonValue result = std::move(number);
  result.type_     = Type::exact;
  return result;
}

TOOLDECODE_INLINE std::string JsonValue::text(JsonLayout layout) const {
  text::detail::ValueStyle style = text::detail::json_style;
  style.append_string =
      layout.ascii ? text::detail::append_ascii_string : text::detail::append_any_string;
  style.comma  = ",";
  style.colon  = layout.indent < 0 ? ":" : ": ";
  style.indent = layout.indent;
  style.any    = true;
  std::string text;
  text::detail::ValueWriter<JsonValue>(text, style).value(*this);
  return text;
}

TOOLDECODE_INLINE void JsonValue::write(std::ostream& out) const {
  out << text();
}

TOOLDECODE_INLINE const char* JsonValue::type_name() const noexcept {
  switch (type_) {
    case Type::null:
      return "null";
    case Type::boolean:
      return "boolean";
    case Type::string:
      return "string";
    case Type::array:
      return "array";
    case Type::object:
      return "object";
    default:
      return "number";
  }
}

TOOLDECODE_INLINE void JsonValue::fail(const char* wanted) const {
  throw Error(Errc::malformed_json, "",
              std::string("the value is ") + type_name() + " and must be " + wanted);
}

TOOLDECODE_INLINE std::size_t JsonValue::size() const noexcept {
  switch (type_) {
    case Type::null:
      return 0;
    case Type::array:
      return held_.array->size();
    case Type::object:
      return held_.object->size();
    default:
      return 1;
  }
}

TOOLDECODE_INLINE bool JsonValue::boolean() const {
  if (type_ != Type::boolean) fail("boolean");
  return held_.boolean;
}

TOOLDECODE_INLINE double JsonValue::number() const {
  switch (type_) {
    case Type::integer:
      return static_cast<double>(held_.integer);
    case Type::unsigned_integer:
      return static_cast<double>(held_.natural);
    case Type::floating:
      return held_.floating;
    case Type::exact: {
      std::string digits = *held_.string;
      // strtod expects the locale's decimal point.
      if (const char* point = std::localeconv()->decimal_point; *point != '\0') {
        std::replace(digits.begin(), digits.end(), '.', *point);
      }
      return std::strtod(digits.c_str(), nullptr);
    }
    default:
      fail("number");
  }
}

TOOLDECODE_INLINE std::int64_t JsonValue::integer() const {
  switch (type_) {
    case Type::integer:
      return held_.integer;
    case Type::unsigned_integer:
      return static_cast<std::int64_t>(held_.natural);
    case Type::floating:
      return static_cast<std::int64_t>(held_.floating);
    default:
      fail("number");
  }
}

TOOLDECODE_INLINE const std::string& JsonValue::string() const {
  if (type_ != Type::string && type_ != Type::exact) fail("string");
  return *held_.string;
}

TOOLDECODE_INLINE std::string& JsonValue::string() {
  return const_cast<std::string&>(std::as_const(*this).string());
}

TOOLDECODE_INLINE const JsonValue::Array& JsonValue::list() const {
  if (type_ != Type::array) fail("array");
  return *held_.array;
}

TOOLDECODE_INLINE JsonValue::Array& JsonValue::list() {
  return const_cast<Array&>(std::as_const(*this).list());
}

TOOLDECODE_INLINE const JsonValue::Object& JsonValue::items() const {
  static const Object none;
  return type_ == Type::object ? *held_.object : none;
}

TOOLDECODE_INLINE JsonValue::Object& JsonValue::items() {
  if (type_ == Type::null) *this = Object();
  if (type_ != Type::object) fail("object");
  return *held_.object;
}

TOOLDECODE_INLINE JsonValue::iterator JsonValue::begin() noexcept {
  iterator at;
  if (type_ == Type::object) {
    at.member_ = held_.object->data();
  } else {
    at.item_ = type_ == Type::array ? held_.array->data() : this;
  }
  return at;
}

TOOLDECODE_INLINE JsonValue::iterator JsonValue::end() noexcept {
  return begin() + static_cast<std::ptrdiff_t>(size());
}

TOOLDECODE_INLINE JsonValue::const_iterator JsonValue::begin() const noexcept {
  return const_cast<JsonValue*>(this)->begin();
}

TOOLDECODE_INLINE JsonValue::const_iterator JsonValue::end() const noexcept {
  return const_cast<JsonValue*>(this)->end();
}

TOOLDECODE_INLINE JsonValue::iterator JsonValue::find(std::string_view key) noexcept {
  if (type_ != Type::object) return end();
  iterator at;
  Member* const first = held_.object->data();
  at.member_          = std::find_if(first, first + held_.object->size(),
                                     [&](const Member& member) { return member.first == key; });
  return at;
}

TOOLDECODE_INLINE JsonValue::const_iterator JsonValue::find(std::string_view key) const noexcept {
  return const_cast<JsonValue*>(this)->find(key);
}

TOOLDECODE_INLINE const JsonValue* JsonValue::find_at(std::string_view pointer) const {
  const auto keys     = text::pointer_keys(pointer);
  const JsonValue* at = keys ? this : nullptr;
  for (std::size_t i = 0; at != nullptr && i < keys->size(); ++i) {
    const std::string& key = (*keys)[i];
    if (at->is_array()) {
      const auto index = text::item_index(key, at->size());
      at               = index ? &at->list()[*index] : nullptr;
    } else {
      const auto found = at->find(key);
      at               = at->is_object() && found != at->end() ? &*found : nullptr;
    }
  }
  return at;
}

TOOLDECODE_INLINE bool JsonValue::contains(std::string_view key) const noexcept {
  return std::ranges::any_of(std::as_const(*this).items(),
                             [&](const Member& member) { return member.first == key; });
}

TOOLDECODE_INLINE const JsonValue& JsonValue::at(std::string_view key) const {
  if (type_ != Type::object) fail("object");
  const auto found = find(key);
  if (found == end()) {
    throw Error(Errc::malformed_json, "", "the object has no \"" + std::string(key) + '"');
  }
  return *found;
}

TOOLDECODE_INLINE JsonValue& JsonValue::at(std::string_view key) {
  return const_cast<JsonValue&>(std::as_const(*this).at(key));
}

TOOLDECODE_INLINE const JsonValue& JsonValue::at(std::size_t index) const {
  const Array& all = list();
  if (index >= all.size()) {
    throw Error(Errc::malformed_json, "",
                "the array has no item " + std::to_string(index) + " (it has " +
                    std::to_string(all.size()) + ")");
  }
  return all[index];
}

TOOLDECODE_INLINE JsonValue& JsonValue::at(std::size_t index) {
  return const_cast<JsonValue&>(std::as_const(*this).at(index));
}

TOOLDECODE_INLINE JsonValue& JsonValue::member(std::string_view key) {
  Object& all      = items();
  const auto found = find(key);
  return found != end() ? *found : all.emplace_back(std::string(key), JsonValue()).second;
}

TOOLDECODE_INLINE JsonValue& JsonValue::emplace_back(JsonValue value) {
  if (type_ == Type::null) *this = Array();
  return list().emplace_back(std::move(value));
}

TOOLDECODE_INLINE std::size_t JsonValue::erase(std::string_view key) {
  return std::erase_if(items(), [&](const Member& member) { return member.first == key; });
}

TOOLDECODE_INLINE void JsonValue::erase(std::size_t index) {
  erase(begin() + static_cast<std::ptrdiff_t>(index));
}

TOOLDECODE_INLINE JsonValue::iterator JsonValue::erase(const_iterator at) {
  const auto index = at - const_iterator(begin());
  if (type_ == Type::object) {
    held_.object->erase(held_.object->begin() + index);
  } else {
    list().erase(list().begin() + index);
  }
  return begin() + index;
}

TOOLDECODE_INLINE void JsonValue::clear() noexcept {
  if (type_ == Type::object) held_.object->clear();
  if (type_ == Type::array) held_.array->clear();
}

TOOLDECODE_INLINE void JsonValue::update(const JsonValue& other) {
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

TOOLDECODE_INLINE bool JsonValue::is_text(std::string_view text) const noexcept {
  return type_ == Type::string && *held_.string == text;
}

TOOLDECODE_INLINE bool JsonValue::equals(const JsonValue& other) const noexcept {
  if (is_number() && other.is_number() && type_ != other.type_) {
    if (type_ == Type::floating || other.type_ == Type::floating) return number() == other.number();
    return held_.natural == other.held_.natural && held_.integer >= 0;
  }
  if (type_ != other.type_) return false;
  switch (type_) {
    case Type::null:
      return true;
    case Type::boolean:
      return held_.boolean == other.held_.boolean;
    case Type::floating:
      return held_.floating == other.held_.floating;
    case Type::exact:
    case Type::string:
      return *held_.string == *other.held_.string;
    case Type::array:
      return *held_.array == *other.held_.array;
    case Type::object:
      return *held_.object == *other.held_.object;
    default:
      return held_.natural == other.held_.natural;
  }
}

}  // namespace tooldecode
