#pragma once

#include <algorithm>
#include <string_view>

#include <tooldecode/constraint/forbidding_keywords.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_pointer.hpp>

namespace tooldecode::constraint {

namespace forbidding {

inline bool is_reference(std::string_view keyword) {
  return keyword == "$ref" || keyword == "$dynamicRef" || keyword == "$recursiveRef";
}

inline bool has_reference(const JsonValue& schema) {
  return schema.is_object() &&
         std::any_of(schema.items().begin(), schema.items().end(),
                     [](const auto& member) { return is_reference(member.first); });
}

/// Whether what a keyword's subschema says must not become less, so that the keyword goes as a whole.
inline bool is_whole(std::string_view keyword) {
  return keyword == "not" || keyword == "if" || keyword == "contains" || keyword == "oneOf";
}

}  // namespace forbidding

TOOLDECODE_INLINE void ForbiddingKeywords::Part::swap() {
  if (schema != nullptr) {
    schema->swap(other_schema);
  } else {
    keyword->swap(other_name);
  }
}

TOOLDECODE_INLINE std::vector<std::string> ForbiddingKeywords::find() {
  try {
    search(schema_, "");
  } catch (const Error& error) {
    if (error.code() != Errc::limit_exceeded) throw;
  }
  std::stable_partition(found_.begin(), found_.end(),
                        [](const std::string& pointer) { return !pointer.ends_with("/type"); });
  return std::move(found_);
}

TOOLDECODE_INLINE void ForbiddingKeywords::search(JsonValue& schema, const std::string& pointer) {
  if (!schema.is_object()) return;
  std::vector<Part> parts;
  for (JsonValue::Member& member : schema.items()) {
    const std::string at = text::extend_pointer(pointer, member.first);
    // A branch of anyOf may admit more, one of oneOf may not.
    if (member.first == "oneOf" && !schema.contains("anyOf")) {
      member.first = "anyOf";
      if (!is_same()) member.first = "oneOf";
    }
    if (member.first == "anyOf" && member.second.is_array()) drop_dead(member.second.list());
    add_parts(parts, member, at);
  }
  // What is tried first is more likely to go: `type`, where another keyword forbids the place too.
  std::stable_partition(parts.begin(), parts.end(),
                        [](const Part& part) { return part.pointer.ends_with("/type"); });
  take_out(parts);
}

TOOLDECODE_INLINE void ForbiddingKeywords::take_out(std::span<Part> parts) {
  if (parts.empty()) return;
  const auto swap_all = [&] {
    for (Part& part : parts) part.swap();
  };
  swap_all();
  const Reach reach = judge_(schema_);
  if (reach == Reach::same) return;
  swap_all();
  if (parts.size() > 1) {
    take_out(parts.first(parts.size() / 2));
    take_out(parts.subspan(parts.size() / 2));
    return;
  }
  const Part& part        = parts.front();
  const std::size_t known = explained_;
  if (part.schema != nullptr) search(*part.schema, part.pointer);
  if (explained_ != known || reach != Reach::more) return;
  ++explained_;
  // What a reference leads to is searched in its own place.
  const bool is_link = part.schema != nullptr && forbidding::has_reference(*part.schema);
  if (!is_link) found_.push_back(part.pointer);
}

TOOLDECODE_INLINE void ForbiddingKeywords::add_parts(std::vector<Part>& parts,
                                                     JsonValue::Member& member,
                                                     std::string pointer) {
  std::string& name  = member.first;
  JsonValue& content = member.second;
  const auto known   = schema::find_keyword(name);
  if (!known || forbidding::is_reference(name)) return;
  const auto add_schema = [&](JsonValue& schema, std::string at) {
    if (schema != false || name != "anyOf") parts.push_back({std::move(at), nullptr, &schema});
  };
  switch (known->shape) {
    case schema::KeywordShape::annotation:
      return;
    case schema::KeywordShape::map:
      if (!content.is_object()) return;
      for (auto& [key, child] : content.items()) {
        add_schema(child, text::extend_pointer(pointer, key));
      }
      return;
    case schema::KeywordShape::value:
      break;
    default:
      if (forbidding::is_whole(name)) break;
      if (!content.is_array()) return add_schema(content, std::move(pointer));
      for (std::size_t i = 0; i < content.size(); ++i) {
        add_schema(content[i], text::extend_pointer(pointer, std::to_string(i)));
      }
      return;
  }
  parts.push_back({std::move(pointer), &name, nullptr, "x-without-" + name});
}

TOOLDECODE_INLINE void ForbiddingKeywords::drop_dead(JsonValue::Array& branches) {
  JsonValue::Array given = branches, alive = branches;
  branches.assign(given.size(), false);
  bool some = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    branches[i]        = given[i];
    const bool is_live = is_same();
    branches[i]        = false;
    if (!is_live) alive[i] = false;
    some = some || is_live;
  }
  // If several values need different branches, no branch reaches the place alone.
  branches = some ? std::move(alive) : std::move(given);
}

}  // namespace tooldecode::constraint
