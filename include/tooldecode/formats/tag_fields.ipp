#pragma once

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <tooldecode/formats/tag_fields.hpp>
#include <tooldecode/text/json_pointer.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE TagFields::TagFields(const Json& object, std::string pointer)
    : object_(object), pointer_(std::move(pointer)) {
  if (!object.is_object()) throw Error(Errc::malformed_document, pointer_, "must be an object");
}

TOOLDECODE_INLINE std::string TagFields::pointer(std::string_view field) const {
  return text::extend_pointer(pointer_, field);
}

TOOLDECODE_INLINE void TagFields::fail(std::string_view field, std::string_view what) const {
  throw Error(Errc::malformed_document, field.empty() ? pointer_ : pointer(field), what);
}

TOOLDECODE_INLINE const TagFields::Json* TagFields::find(std::string_view field) {
  asked_.emplace_back(field);
  const auto at = object_.find(std::string(field));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

TOOLDECODE_INLINE const TagFields::Json& TagFields::get(std::string_view field) {
  const Json* const value = find(field);
  if (value == nullptr) fail("", "the field \"" + std::string(field) + "\" is missing");
  return *value;
}

TOOLDECODE_INLINE std::string TagFields::text(std::string_view field) {
  const Json& value = get(field);
  if (!value.is_string()) fail(field, "must be a string");
  return value.get<std::string>();
}

TOOLDECODE_INLINE bool TagFields::flag(std::string_view field, bool otherwise) {
  const Json* const value = find(field);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(field, "must be true or false");
  return value->get<bool>();
}

TOOLDECODE_INLINE std::optional<std::uint32_t> TagFields::find_count(std::string_view field) {
  const Json* const value = find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() || value->get<std::int64_t>() < 0 ||
      value->get<std::int64_t>() > std::numeric_limits<std::int32_t>::max()) {
    fail(field, "must be an integer from 0 to 2^31 - 1");
  }
  return value->get<std::uint32_t>();
}

TOOLDECODE_INLINE const TagFields::Json& TagFields::list(std::string_view field) {
  const Json& value = get(field);
  if (!value.is_array()) fail(field, "must be a list");
  if (value.empty()) fail(field, "must not be empty");
  return value;
}

TOOLDECODE_INLINE std::vector<std::string> TagFields::texts(std::string_view field) {
  std::vector<std::string> all;
  const Json* const value = find(field);
  if (value == nullptr) return all;
  if (!value->is_array()) fail(field, "must be a list");
  for (const Json& one : *value) {
    if (!one.is_string() || one.string().empty()) {
      throw Error(Errc::malformed_document, pointer(field) + '/' + std::to_string(all.size()),
                  "must be a string that is not empty");
    }
    all.push_back(one.get<std::string>());
  }
  return all;
}

TOOLDECODE_INLINE void TagFields::refuse(std::string_view field, std::string_view why) {
  if (find(field) != nullptr) throw Error(Errc::unsupported_keyword, pointer(field), why);
}

TOOLDECODE_INLINE void TagFields::finish() const {
  for (const auto& [field, value] : object_.items()) {
    if (std::find(asked_.begin(), asked_.end(), field) == asked_.end()) {
      fail(field, "a field that is not known here");
    }
  }
}

TOOLDECODE_INLINE bool ends_nowhere(const JsonValue& format) {
  static constexpr std::string_view open[]{
      "any_text",       "any_tokens", "triggered_tags", "token_triggered_tags", "dispatch",
      "token_dispatch", "star",       "plus",           "tags_with_separator"};
  if (!format.is_object() || !format.contains("type") || !format["type"].is_string()) return false;
  const auto& type = format["type"].string();
  if (std::find(std::begin(open), std::end(open), type) != std::end(open)) return true;
  if (type == "optional" || type == "repeat") {
    return format.contains("content") && ends_nowhere(format["content"]);
  }
  if ((type != "sequence" && type != "or") || !format.contains("elements")) return false;
  const auto& all = format["elements"];
  return std::any_of(all.begin(), all.end(), ends_nowhere);
}

}  // namespace tooldecode::formats
