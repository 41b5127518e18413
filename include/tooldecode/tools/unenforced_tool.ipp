#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/document_readings.hpp>
#include <tooldecode/tools/unenforced_tool.hpp>

namespace tooldecode::tools {

namespace unenforced {

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Without one of these, more values conform, wherever it stands.
inline constexpr std::array<std::string_view, 17> assertions{
    "type",          "enum",         "const",    "pattern",          "format",
    "minLength",     "maxLength",    "minimum",  "exclusiveMinimum", "exclusiveMaximum",
    "maximum",       "minItems",     "maxItems", "uniqueItems",      "multipleOf",
    "minProperties", "maxProperties"};
/// Whose schemas hold for a value inside, so that any value may stand there.
inline constexpr std::array<std::string_view, 6> inner{"properties",        "items",
                                                       "prefixItems",       "additionalProperties",
                                                       "patternProperties", "additionalItems"};
/// Whose schemas hold for the same value. Where one admits more, so does the whole, but the names
/// in it also say which other keys there may be.
inline constexpr std::array<std::string_view, 7> parts{
    "allOf", "anyOf", "then", "else", "$defs", "definitions", "dependentSchemas"};
/// Whose value is a map of schemas.
inline constexpr std::array<std::string_view, 5> maps{"properties", "patternProperties", "$defs",
                                                      "definitions", "dependentSchemas"};
/// Whose schemas must not admit more.
inline constexpr std::array<std::string_view, 5> tests{"not", "if", "oneOf", "contains",
                                                       "propertyNames"};

/// Whether a schema refers to another from where nothing must admit more.
inline bool has_tested_reference(const JsonValue& value, bool is_tested) {
  if (value.is_array()) {
    return std::any_of(value.begin(), value.end(), [&](const JsonValue& member) {
      return has_tested_reference(member, is_tested);
    });
  }
  if (!value.is_object()) return false;
  for (const auto& [key, member] : value.items()) {
    if (is_tested && key.ends_with("ef") && key.starts_with("$")) return true;
    if (has_tested_reference(member, is_tested || is_among(tests, key))) return true;
  }
  return false;
}

inline JsonValue* find_member(JsonValue& of, const std::string& key) {
  if (of.is_object()) return of.contains(key) ? &of[key] : nullptr;
  const auto index = of.is_array() ? text::item_index(key, of.size()) : std::nullopt;
  return index ? &of[*index] : nullptr;
}

/// Widens a schema at a place; says what is no longer enforced, or nullopt if nothing was done.
inline std::optional<std::string> widen(JsonValue& root, std::string_view path) {
  const auto keys   = text::pointer_keys(path).value_or(std::vector<std::string>());
  JsonValue* schema = &root;
  JsonValue* widest = nullptr;  // the innermost schema that may admit anything
  std::string at, widest_at;
  for (std::size_t i = 0; i < keys.size() && schema->is_object(); ++i) {
    const std::string& keyword = keys[i];
    JsonValue* next            = find_member(*schema, keyword);
    if (next == nullptr) break;
    if (is_among(assertions, keyword) && (schema != &root || keyword != "type")) {
      schema->erase(keyword);
      return "\"" + keyword + "\" is not enforced";
    }
    const bool is_inner = is_among(inner, keyword);
    if (!is_inner && !is_among(parts, keyword)) break;
    at = text::extend_pointer(at, keyword);
    if (is_among(maps, keyword) || next->is_array()) {
      if (++i == keys.size()) break;
      next = find_member(*next, keys[i]);
      if (next == nullptr) break;
      at = text::extend_pointer(at, keys[i]);
    }
    schema = next;
    // The error at a pattern of keys may be the pattern's.
    if (is_inner && (keyword != "patternProperties" || i + 1 < keys.size())) {
      widest    = schema;
      widest_at = at;
    }
  }
  if (widest == nullptr || *widest == JsonValue::object() || *widest == true) return std::nullopt;
  *widest = JsonValue::object();
  return "any value is allowed at " + widest_at;
}

inline Note note_of(Reading reading, const Tool& tool, const Error& error,
                    const std::string& what) {
  return {reading, tool.name, error.where().empty() ? tool.parameters_pointer : error.where(),
          what + ": " + error.what()};
}

}  // namespace unenforced

TOOLDECODE_INLINE bool is_of_one_tool(Errc code) noexcept {
  switch (code) {
    case Errc::malformed_document:
    case Errc::malformed_schema:
    case Errc::unsupported_keyword:
    case Errc::unsatisfiable_schema:
    case Errc::malformed_pattern:
    case Errc::unsupported_pattern:
    case Errc::unsupported_name:
    case Errc::limit_exceeded:
      return true;
    default:
      return false;
  }
}

TOOLDECODE_INLINE std::optional<UnenforcedTool> widened_tool(const Tool& tool, const Error& error) {
  const std::string& root      = tool.parameters_pointer;
  const std::string_view where = error.where();
  // A name that cannot be written stays so, whatever its value may be.
  if (!where.starts_with(root + '/') || error.code() == Errc::unsupported_name) return std::nullopt;
  if (unenforced::has_tested_reference(tool.parameters, false)) return std::nullopt;
  UnenforcedTool widened{tool, {}};
  const auto what = unenforced::widen(widened.tool.parameters, where.substr(root.size()));
  if (!what) return std::nullopt;
  if (tool.documented.is_null()) widened.tool.documented = tool.parameters;
  widened.note = unenforced::note_of(Reading::widened_schema, tool, error, *what);
  return widened;
}

TOOLDECODE_INLINE JsonValue any_arguments(const JsonValue& documented) {
  JsonValue properties = JsonValue::object();
  if (documented.is_object() && documented.contains("properties") &&
      documented.at("properties").is_object()) {
    for (const auto& property : documented.at("properties").items()) {
      properties[property.first] = JsonValue::object();
    }
  }
  return JsonValue{{"type", "object"}, {"properties", std::move(properties)}};
}

TOOLDECODE_INLINE UnenforcedTool with_any_arguments(const Tool& tool, const Error& error) {
  const bool is_custom = tool.form == DocumentForm::custom;
  UnenforcedTool widened{
      tool, unenforced::note_of(
                Reading::any_arguments, tool, error,
                is_custom ? "any text is allowed as input" : "any object is allowed as arguments")};
  const JsonValue documented = documented_parameters(tool);
  if (is_custom) {
    widened.tool.parameters = custom_parameters(JsonValue::object(), tool.parameters_pointer);
  } else {
    widened.tool.documented = documented.is_object() ? documented : any_arguments(documented);
    widened.tool.parameters = any_arguments(documented);
    widened.tool.strict     = false;
  }
  return widened;
}

TOOLDECODE_INLINE Note dropped_tool(const Tool& tool, const Error& error) {
  return unenforced::note_of(Reading::dropped_tool, tool, error, "the tool is left out");
}

}  // namespace tooldecode::tools
