/// \file
/// What is known of JSON Schema's keywords apart from their grammar: which there are, what they are
/// about, where a `$ref` points, and when two schemas exclude each other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// Whether a keyword constrains values and SchemaCompiler knows how.
[[nodiscard]] inline bool is_constraint_keyword(std::string_view keyword) noexcept {
  static constexpr std::array<std::string_view, 21> known{"$ref",
                                                          "additionalItems",
                                                          "additionalProperties",
                                                          "anyOf",
                                                          "const",
                                                          "enum",
                                                          "exclusiveMaximum",
                                                          "exclusiveMinimum",
                                                          "items",
                                                          "maxItems",
                                                          "maxLength",
                                                          "maximum",
                                                          "minItems",
                                                          "minLength",
                                                          "minimum",
                                                          "oneOf",
                                                          "pattern",
                                                          "prefixItems",
                                                          "properties",
                                                          "required",
                                                          "type"};
  return std::find(known.begin(), known.end(), keyword) != known.end();
}

/// Whether a keyword says nothing about which values conform. `format` is one, as draft 2020-12 has
/// it; so are definitions, which matter only where a `$ref` names them, and `x-` extensions.
[[nodiscard]] inline bool is_annotation_keyword(std::string_view keyword) noexcept {
  static constexpr std::array<std::string_view, 17> known{"$anchor",
                                                          "$comment",
                                                          "$defs",
                                                          "$id",
                                                          "$schema",
                                                          "contentEncoding",
                                                          "contentMediaType",
                                                          "contentSchema",
                                                          "default",
                                                          "definitions",
                                                          "deprecated",
                                                          "description",
                                                          "example",
                                                          "examples",
                                                          "format",
                                                          "readOnly",
                                                          "title"};
  return keyword == "writeOnly" || keyword == "id" || keyword.starts_with("x-") ||
         std::find(known.begin(), known.end(), keyword) != known.end();
}

/// Whether a keyword says anything about values of this value's type.
[[nodiscard]] inline bool is_about(std::string_view keyword, const nlohmann::ordered_json& value) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), keyword) != list.end();
  };
  if (is_one_of({"minLength", "maxLength", "pattern"})) return value.is_string();
  if (is_one_of({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})) {
    return value.is_number();
  }
  if (is_one_of({"items", "prefixItems", "additionalItems", "minItems", "maxItems"})) {
    return value.is_array();
  }
  if (is_one_of({"properties", "required", "additionalProperties"})) return value.is_object();
  return true;
}

/// Whether a number has no fractional part, however it is written.
[[nodiscard]] inline bool is_integral(const nlohmann::ordered_json& number) {
  return !number.is_number_float() || std::trunc(number.get<double>()) == number.get<double>();
}

/// A name as a part of a JSON pointer (RFC 6901).
[[nodiscard]] inline std::string escape_pointer(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

/// The schema that a `$ref` names: a JSON pointer into the document, as a URI fragment.
///
/// \param pointer  where the `$ref` stands, for the error
[[nodiscard]] inline const nlohmann::ordered_json& resolve(const nlohmann::ordered_json& root,
                                                           const nlohmann::ordered_json& reference,
                                                           const std::string& pointer) {
  if (!reference.is_string()) throw Error(Errc::malformed_schema, pointer, "a $ref is a string");
  const auto text = reference.get<std::string>();
  if (text.empty() || text[0] != '#' || (text.size() > 1 && text[1] != '/')) {
    throw Error(Errc::unsupported_keyword, pointer,
                "only references into the same document are supported, not \"" + text + '"');
  }
  const auto hexadecimal = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string plain;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hexadecimal(text[i + 1]) >= 0 &&
        hexadecimal(text[i + 2]) >= 0) {
      plain.push_back(static_cast<char>(16 * hexadecimal(text[i + 1]) + hexadecimal(text[i + 2])));
      i += 2;
    } else {
      plain.push_back(text[i]);
    }
  }
  try {
    return root.at(nlohmann::ordered_json::json_pointer(plain));
  } catch (const nlohmann::json::exception&) {
    throw Error(Errc::malformed_schema, pointer, "nothing is at \"" + text + '"');
  }
}

/// The names that a schema's `required` lists, each once; Error{malformed_schema} where it is no
/// list of names.
///
/// \param pointer  where the schema stands, for the error
[[nodiscard]] inline std::vector<std::string> required_of(const nlohmann::ordered_json& schema,
                                                          const std::string& pointer) {
  const auto malformed = [&] {
    throw Error(Errc::malformed_schema, pointer + "/required", "must be an array of names");
  };
  std::vector<std::string> names;
  if (!schema.contains("required")) return names;
  if (!schema["required"].is_array()) malformed();
  for (const nlohmann::ordered_json& name : schema["required"]) {
    if (!name.is_string()) malformed();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Whether no value can conform to both schemas, as far as their types, and the constants of a
/// property that both require, tell; false where that is not known.
[[nodiscard]] inline bool are_disjoint(const nlohmann::ordered_json& a,
                                       const nlohmann::ordered_json& b) {
  using Json = nlohmann::ordered_json;
  if (!a.is_object() || !b.is_object()) return a == false || b == false;
  const auto constants = [](const Json& schema) -> Json {
    if (schema.contains("const")) return Json::array({schema["const"]});
    return schema.contains("enum") && schema["enum"].is_array() ? schema["enum"] : Json();
  };
  const auto kinds = [&](const Json& schema) {
    Json result    = Json::array();
    const auto add = [&](const std::string& type) {
      result.push_back(type == "integer" ? std::string("number") : type);
    };
    if (schema.contains("type")) {
      const Json& type = schema["type"];
      for (const Json& name : type.is_array() ? type : Json::array({type})) {
        if (name.is_string()) add(name.get<std::string>());
      }
    } else {
      const Json values = constants(schema);
      if (values.is_null()) return Json();
      for (const Json& value : values) add(value.type_name());
    }
    return result;
  };
  const auto share_none = [](const Json& left, const Json& right) {
    if (left.is_null() || right.is_null()) return false;
    return std::none_of(left.begin(), left.end(), [&](const Json& value) {
      return std::find(right.begin(), right.end(), value) != right.end();
    });
  };
  if (share_none(kinds(a), kinds(b)) || share_none(constants(a), constants(b))) return true;
  const auto is_object = [&](const Json& schema) {
    return kinds(schema) == Json::array({"object"});
  };
  if (!is_object(a) || !is_object(b) || !a.contains("required") || !b.contains("required")) {
    return false;
  }
  const auto property = [](const Json& schema, const Json& name) {
    const auto text = name.is_string() ? name.get<std::string>() : std::string();
    const bool has  = schema.contains("properties") && schema["properties"].is_object() &&
                     schema["properties"].contains(text);
    return has ? schema["properties"][text] : Json(true);
  };
  for (const Json& name : a["required"]) {
    const bool both =
        std::find(b["required"].begin(), b["required"].end(), name) != b["required"].end();
    if (both && are_disjoint(property(a, name), property(b, name))) return true;
  }
  return false;
}

}  // namespace tooldecode
