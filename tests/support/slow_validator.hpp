/// \file
/// slow::conforms: whether a value conforms to a schema, keyword by keyword.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <regex>
#include <stdexcept>
#include <string>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::slow {

[[nodiscard]] inline std::wstring code_points(const std::string& text) {
  std::wstring result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result.push_back(static_cast<wchar_t>(byte));
    } else if (byte >= 0xC0) {
      result.push_back(static_cast<wchar_t>(byte & (byte < 0xE0   ? 0x1F
                                                    : byte < 0xF0 ? 0x0F
                                                                  : 0x07)));
    } else {
      result.back() = static_cast<wchar_t>(result.back() << 6 | (byte & 0x3F));
    }
  }
  return result;
}

/// Validates the keywords that SchemaCompiler supports, by their definitions.
///
/// It follows only pointer references and matches patterns with std::wregex.
[[nodiscard]] inline bool conforms(const tooldecode::JsonValue& value,
                                   const tooldecode::JsonValue& schema,
                                   const tooldecode::JsonValue& root) {
  using Json = tooldecode::JsonValue;
  if (schema.is_boolean()) return schema.get<bool>();
  const auto has   = [&](const char* keyword) { return schema.contains(keyword); };
  const auto count = [&](const char* keyword) {
    return static_cast<std::size_t>(std::min(schema[keyword].get<double>(), 0x1p53));
  };
  const auto integral = [&] {
    return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
  };
  const auto is = [&](const JsonValue& type) {
    return type == "integer" ? integral() : type == value.type_name();
  };
  if (has("$ref")) {
    const auto pointer           = schema["$ref"].get<std::string>().substr(1);
    const JsonValue* const meant = root.find_at(pointer);
    if (!meant) throw std::out_of_range("a reference to another document");
    if (!conforms(value, *meant, root)) return false;
  }
  if (has("type")) {
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    if (std::none_of(types.begin(), types.end(), is)) return false;
  }
  // Objects are equal in any order of members.
  const auto equal = [](const Json& a, const Json& b) {
    return nlohmann::json::parse(a.text()) == nlohmann::json::parse(b.text());
  };
  if (has("const") && !equal(value, schema["const"])) return false;
  if (has("enum") && std::none_of(schema["enum"].begin(), schema["enum"].end(),
                                  [&](const Json& one) { return equal(one, value); })) {
    return false;
  }
  std::size_t matching = 0;
  const auto count_of  = [&](const char* keyword) {
    matching = 0;
    for (const Json& branch : schema[keyword]) matching += conforms(value, branch, root) ? 1 : 0;
    return matching;
  };
  if (has("anyOf") && count_of("anyOf") == 0) return false;
  if (has("oneOf") && count_of("oneOf") != 1) return false;
  const auto holds = [&](const char* keyword) { return conforms(value, schema[keyword], root); };
  if (has("allOf") && count_of("allOf") != schema["allOf"].size()) return false;
  if (has("not") && holds("not")) return false;
  if (has("if")) {
    const char* branch = holds("if") ? "then" : "else";
    if (has(branch) && !holds(branch)) return false;
  }
  if (value.is_number()) {
    if (has("multipleOf")) {  // multiples of quarters
      const auto number = value.get<double>(), divisor = schema["multipleOf"].get<double>();
      if (std::fmod(number * 4, divisor * 4) != 0) return false;
    }
    const auto number = value.get<double>();
    if (has("minimum") && number < schema["minimum"].get<double>()) return false;
    if (has("maximum") && number > schema["maximum"].get<double>()) return false;
    if (has("exclusiveMinimum") && number <= schema["exclusiveMinimum"].get<double>()) return false;
    if (has("exclusiveMaximum") && number >= schema["exclusiveMaximum"].get<double>()) return false;
  }
  if (value.is_string()) {
    const auto text          = value.get<std::string>();
    const std::wstring wide  = code_points(text);
    const std::size_t length = wide.size();
    if (has("minLength") && length < count("minLength")) return false;
    if (has("maxLength") && length > count("maxLength")) return false;
    if (has("pattern")) {
      const std::wregex pattern(code_points(schema["pattern"].get<std::string>()));
      if (!std::regex_search(wide, pattern)) return false;
    }
  }
  if (value.is_array()) {
    if (has("minItems") && value.size() < count("minItems")) return false;
    if (has("maxItems") && value.size() > count("maxItems")) return false;
    const bool listed = has("items") && schema["items"].is_array();  // as in drafts up to 2019-09
    const char* const prefix = listed ? "items" : "prefixItems";
    const char* const rest   = listed ? "additionalItems" : "items";
    const std::size_t places = has(prefix) ? schema[prefix].size() : 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i < places && !conforms(value[i], schema[prefix][i], root)) return false;
      if (i >= places && has(rest) && !conforms(value[i], schema[rest], root)) return false;
    }
  }
  if (value.is_array() && has("contains")) {
    const auto matches =
        static_cast<std::size_t>(std::count_if(value.begin(), value.end(), [&](const Json& item) {
          return conforms(item, schema["contains"], root);
        }));
    if (matches < (has("minContains") ? count("minContains") : 1)) return false;
    if (has("maxContains") && matches > count("maxContains")) return false;
  }
  if (value.is_array() && has("uniqueItems") && schema["uniqueItems"].get<bool>()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (equal(value[i], value[j])) return false;
      }
    }
  }
  if (value.is_object()) {
    if (has("minProperties") && value.size() < count("minProperties")) return false;
    if (has("maxProperties") && value.size() > count("maxProperties")) return false;
    const Json none       = Json::object();
    const Json properties = has("properties") ? schema["properties"] : none;
    const Json patterns   = has("patternProperties") ? schema["patternProperties"] : none;
    for (const auto& [key, member] : value.items()) {
      if (has("propertyNames") && !conforms(key, schema["propertyNames"], root)) return false;
      bool is_known = properties.contains(key);
      if (is_known && !conforms(member, properties[key], root)) return false;
      for (const auto& [pattern, one] : patterns.items()) {
        if (!std::regex_search(code_points(key), std::wregex(code_points(pattern)))) continue;
        is_known = true;
        if (!conforms(member, one, root)) return false;
      }
      if (!is_known && has("additionalProperties") &&
          !conforms(member, schema["additionalProperties"], root)) {
        return false;
      }
    }
    if (has("dependentRequired")) {
      for (const auto& [name, needed] : schema["dependentRequired"].items()) {
        for (const Json& other : needed) {
          if (value.contains(name) && !value.contains(other.get<std::string>())) return false;
        }
      }
    }
    if (has("dependentSchemas")) {
      for (const auto& [name, one] : schema["dependentSchemas"].items()) {
        if (value.contains(name) && !conforms(value, one, root)) return false;
      }
    }
    if (has("required")) {
      for (const Json& name : schema["required"]) {
        if (!value.contains(name.get<std::string>())) return false;
      }
    }
  }
  return true;
}

}  // namespace tooldecode::slow
