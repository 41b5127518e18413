#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/decimal.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/string_format.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/document_readings.hpp>

namespace tooldecode::tools {

TOOLDECODE_INLINE DocumentReader::Json DocumentReader::parameters(Json schema,
                                                                  const std::string& pointer) {
  if (!schema.is_object()) {
    throw Error(Errc::malformed_document, pointer, "parameters must be the schema of an object");
  }
  if (auto map = from_map(schema, pointer)) schema = std::move(*map);
  if (schema.contains("type") && !schema["type"].is_null()) {
    map_type(schema, pointer);
    const Json type   = schema.value("type", Json());
    const bool object = type == "object" || (type.is_array() && has(type, "object"));
    if (!object) {
      throw Error(Errc::malformed_document, text::extend_pointer(pointer, "type"),
                  "must be \"object\": a call has an object of arguments");
    }
  }
  schema["type"] = "object";
  schema.erase("default");  // a call always has arguments
  if (!schema.value("nullable", Json()).is_null()) (void)take_nullable(schema, pointer);
  read(schema, pointer, {.top = true, .combined = has_free_reference(schema)});
  return schema;
}

TOOLDECODE_INLINE void DocumentReader::note(Reading reading, const std::string& pointer,
                                            std::string text) {
  notes_.push_back({reading, tool_, pointer, std::move(text)});
}

TOOLDECODE_INLINE bool DocumentReader::has(const Json& array, const Json& value) {
  return std::find(array.begin(), array.end(), value) != array.end();
}

TOOLDECODE_INLINE std::unordered_set<std::string> DocumentReader::names_of(const Json& object) {
  std::unordered_set<std::string> names;
  for (const auto& member : object.items()) names.insert(member.first);
  return names;
}

TOOLDECODE_INLINE void DocumentReader::read(Json& schema, const std::string& pointer,
                                            Surroundings place) {
  if (schema.is_boolean()) return;
  if (!schema.is_object()) {
    throw Error(Errc::malformed_schema, pointer, "a schema must be an object or a boolean");
  }
  BuildBudget::spend_at(pointer, 30 + 10 * schema.size() + pointer.size() / 16, 64 * schema.size());
  if (!place.top && says_type_alone(schema)) return;
  drop_nulls(schema, pointer);
  drop_optional(schema, pointer);
  note_unknown(schema, pointer);
  if (schema.contains("required") && schema["required"].is_boolean()) {
    schema.erase("required");
    note(Reading::required_flag, pointer, "\"required\" is dropped: it is not about a property");
  }
  hoist_required(schema, pointer);
  read_number_texts(schema, pointer);
  if (schema.contains("type")) map_type(schema, pointer);
  move_array_enum(schema, pointer);
  prefer_enum(schema, pointer);
  close(schema, pointer, place);
  drop_unknown_required(schema, pointer);
  read_children(schema, pointer, place);
  admit_null(schema, pointer);  // last: it asks what the other keywords admit
}

TOOLDECODE_INLINE bool DocumentReader::says_type_alone(const Json& schema) {
  return schema.is_object() && std::ranges::all_of(schema.items(), [](const auto& member) {
           const std::string_view key = member.first;
           return key == "description" || key == "title" ||
                  (key == "default" && !member.second.is_null()) ||
                  (key == "type" && is_own_type(member.second));
         });
}

TOOLDECODE_INLINE void DocumentReader::read_children(Json& schema, const std::string& pointer,
                                                     Surroundings place) {
  const bool combined = place.combined || has_applicator(schema);
  for (auto& [name, content] : schema.items()) {
    const std::string_view key = name;  // captured by the lambdas below
    Json& value                = content;
    const auto at              = [&] { return text::extend_pointer(pointer, key); };
    const auto one_of          = [&](auto... keys) { return ((key == keys) || ...); };
    const auto read_map        = [&](Surroundings inside) {
      if (!value.is_object()) return;  // the schema compiler reports the error
      for (auto& child : value.items()) {
        if (key == "dependencies" && !child.second.is_object()) continue;
        if (says_type_alone(child.second)) {  // as most schemas do
          BuildBudget::spend_at(pointer, 10 * child.second.size(), 64 * child.second.size());
          continue;
        }
        read(child.second, text::extend_pointer(at(), child.first), inside);
      }
    };
    const auto read_list = [&](Surroundings inside) {
      if (!value.is_array()) return;
      for (std::size_t i = 0; i < value.size(); ++i) {
        read(value[i], text::extend_pointer(at(), std::to_string(i)), inside);
      }
    };
    if (one_of("properties", "patternProperties")) {
      read_map({.combined = combined, .tests = place.tests});
    } else if (one_of("$defs", "definitions")) {
      read_map({.combined = true});
    } else if (one_of("dependentSchemas", "dependencies")) {
      read_map({.combined = true, .tests = true});
    } else if (one_of("anyOf", "oneOf", "allOf")) {
      read_list({.combined = true, .tests = place.tests});
    } else if (key == "prefixItems" || (key == "items" && value.is_array())) {
      read_list({.combined = combined, .tests = place.tests});
    } else if (one_of("if", "then", "else", "not", "contains")) {
      read(value, at(), {.combined = true, .tests = true});
    } else if (one_of("items", "additionalProperties", "additionalItems", "propertyNames",
                      "unevaluatedItems", "unevaluatedProperties")) {
      read(value, at(), {.combined = combined, .tests = place.tests});
    }
  }
}

TOOLDECODE_INLINE void DocumentReader::drop_nulls(Json& schema, const std::string& pointer) {
  if (std::ranges::none_of(schema.items(), [](const auto& one) { return one.second.is_null(); })) {
    return;
  }
  for (const char* key :
       {"type", "properties", "required", "enum", "items", "additionalProperties", "nullable"}) {
    if (!schema.contains(key) || !schema[key].is_null()) continue;
    schema.erase(key);
    note(Reading::null_keyword, pointer, '"' + std::string(key) + "\" is null and left out");
  }
}

TOOLDECODE_INLINE void DocumentReader::drop_optional(Json& schema, const std::string& pointer) {
  if (schema.erase("optional") == 0) return;
  note(Reading::optional_keyword, pointer, "\"optional\" is dropped: \"required\" decides");
}

TOOLDECODE_INLINE void DocumentReader::hoist_required(Json& schema, const std::string& pointer) {
  if (!schema.contains("properties") || !schema["properties"].is_object()) return;
  std::vector<std::string> names;
  for (auto& property : schema["properties"].items()) {
    Json& value = property.second;
    if (!value.is_object() || !value.contains("required") || !value["required"].is_boolean()) {
      continue;
    }
    const bool required = value["required"].get<bool>();
    value.erase("required");
    if (required) names.push_back(property.first);
    note(Reading::required_flag,
         text::extend_pointer(text::extend_pointer(pointer, "properties"), property.first),
         required ? "\"required\": true names the property as required in its object"
                  : "\"required\": false is dropped");
  }
  if (names.empty()) return;
  if (!schema.contains("required")) schema["required"] = Json::array();
  Json& required = schema["required"];
  if (!required.is_array()) return;
  std::unordered_set<std::string> known;
  for (const Json& name : required) {
    if (name.is_string()) known.insert(name.string());
  }
  for (const std::string& name : names) {
    if (known.insert(name).second) required.push_back(name);
  }
}

TOOLDECODE_INLINE void DocumentReader::read_number_texts(Json& schema, const std::string& pointer) {
  static constexpr std::array<std::string_view, 11> numeric{
      "minimum",   "maximum",  "exclusiveMinimum", "exclusiveMaximum", "multipleOf",   "minLength",
      "maxLength", "minItems", "maxItems",         "minProperties",    "maxProperties"};
  for (auto& [key, value] : schema.items()) {
    if (!value.is_string() || std::ranges::find(numeric, key) == numeric.end()) continue;
    const std::string text = value.string();
    try {
      Json number = text::parse_exact_json(text);
      if (!text::ExactNumber::is_number(number)) continue;
      value = std::move(number);
    } catch (const Error&) {
      continue;
    }
    note(Reading::number_text, text::extend_pointer(pointer, key),
         "the text \"" + text + "\" is read as a number");
  }
}

TOOLDECODE_INLINE std::optional<DocumentReader::Json> DocumentReader::meaning_of_item(
    std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), lower);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 19> names{{
      {"dict", "object"},   {"object", "object"}, {"float", "number"},    {"double", "number"},
      {"number", "number"}, {"int", "integer"},   {"integer", "integer"}, {"long", "integer"},
      {"tuple", "array"},   {"list", "array"},    {"array", "array"},     {"str", "string"},
      {"string", "string"}, {"bool", "boolean"},  {"boolean", "boolean"}, {"none", "null"},
      {"nonetype", "null"}, {"null", "null"},     {"map", "object"},
  }};
  for (const auto& [from, to] : names) {
    if (name == from) return Json{{"type", to}};
  }
  if (name == "json") return Json{{"type", {"object", "array"}}};
  if (name == "any" || name.starts_with("union(") || name.starts_with("union[")) {
    return Json::object();
  }
  if (name.starts_with("dict(") || name.starts_with("dict[")) return Json{{"type", "object"}};
  return std::nullopt;
}

TOOLDECODE_INLINE std::optional<DocumentReader::Json> DocumentReader::meaning_of(
    std::string_view name) {
  std::size_t lists = 0;
  for (std::string begin(5, ' '); name.size() >= 6; ++lists) {
    std::transform(name.begin(), name.begin() + 5, begin.begin(), lower);
    const bool is_list =
        (begin == "list(" && name.ends_with(")")) || (begin == "list[" && name.ends_with("]"));
    if (!is_list || lists == text::ValueReader::max_depth) break;
    name = name.substr(5, name.size() - 6);
  }
  auto meaning = meaning_of_item(std::string(name));
  for (; meaning && lists > 0; --lists) {
    meaning = Json{{"type", "array"}, {"items", std::move(*meaning)}};
  }
  return meaning;
}

TOOLDECODE_INLINE bool DocumentReader::is_own_type(const Json& type) {
  constexpr std::array<std::string_view, 7> names{"string", "integer", "boolean", "object",
                                                  "array",  "number",  "null"};
  return type.is_string() && std::find(names.begin(), names.end(), type.string()) != names.end();
}

TOOLDECODE_INLINE void DocumentReader::map_type(Json& schema, const std::string& pointer) {
  if (is_own_type(schema["type"])) return;
  const Json before = schema["type"];
  if (before.is_string()) {
    const auto meaning = meaning_of(before.string());
    if (!meaning || meaning->value("type", Json()) == before) return;
    schema.erase("type");
    for (const auto& member : meaning->items()) {
      if (!schema.contains(member.first)) schema[member.first] = member.second;
    }
    note(Reading::type_name, text::extend_pointer(pointer, "type"),
         "type \"" + before.get<std::string>() + "\" is read as " +
             (meaning->empty() ? std::string("any value") : meaning->text()));
  } else if (before.is_array()) {
    Json types = Json::array();
    std::unordered_set<std::string> known;  // as JSON text
    for (const Json& name : before) {
      const auto meaning = name.is_string() ? meaning_of(name.string()) : std::nullopt;
      const bool plain   = meaning && meaning->contains("type") && (*meaning)["type"].is_string();
      const Json type    = plain ? (*meaning)["type"] : name;
      const bool is_new  = known.insert(type.text()).second;
      if (is_new) types.push_back(type);
    }
    if (types == before) return;
    schema["type"] = types;
    note(Reading::type_name, text::extend_pointer(pointer, "type"),
         "type " + before.text() + " is read as " + types.text());
  }
}

TOOLDECODE_INLINE bool DocumentReader::is_of_type(const Json& value, const Json& type) {
  if (type.is_array()) {
    return std::any_of(type.begin(), type.end(),
                       [&](const Json& one) { return is_of_type(value, one); });
  }
  if (type == "integer") {
    return text::ExactNumber::is_number(value) && text::Decimal::parse(value.text()).is_integral();
  }
  return (type == "string" && value.is_string()) ||
         (type == "number" && text::ExactNumber::is_number(value)) ||
         (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null()) ||
         (type == "array" && value.is_array()) || (type == "object" && value.is_object());
}

TOOLDECODE_INLINE void DocumentReader::move_array_enum(Json& schema, const std::string& pointer) {
  if (!schema.contains("enum") || !schema.contains("type") || schema["type"] != "array") return;
  const Json members = schema["enum"];
  if (!members.is_array() || members.empty() ||
      std::any_of(members.begin(), members.end(), [](const Json& m) { return m.is_array(); })) {
    return;
  }
  if (!schema.contains("items")) schema["items"] = Json::object();
  if (!schema["items"].is_object()) return;
  if (!schema["items"].contains("enum")) schema["items"]["enum"] = members;
  schema.erase("enum");
  note(Reading::array_enum, text::extend_pointer(pointer, "enum"), "the enum is about the items");
}

TOOLDECODE_INLINE void DocumentReader::prefer_enum(Json& schema, const std::string& pointer) {
  if (!schema.contains("enum") || !schema.contains("type") || !schema["enum"].is_array()) return;
  const Json& members = schema["enum"];
  const Json type     = schema["type"];
  const auto outside  = std::find_if(members.begin(), members.end(),
                                     [&](const Json& member) { return !is_of_type(member, type); });
  if (outside == members.end()) return;
  const std::string value = outside->text();
  note(Reading::enum_over_type, text::extend_pointer(pointer, "enum"),
       lenient_.enum_over_type
           ? "type " + type.text() + " is dropped: the enum has " + value
           : "type " + type.text() + " excludes " + value + ", which the enum has");
  if (lenient_.enum_over_type) schema.erase("type");
}

TOOLDECODE_INLINE std::optional<DocumentReader::Json> DocumentReader::from_map(
    const Json& parameters, const std::string& pointer) {
  const auto describes = [](const Json& value) {
    return value.is_object() &&
           ((value.contains("type") && value["type"].is_string()) ||
            (value.contains("description") && value["description"].is_string()));
  };
  // Beside a described member that is no keyword, a described keyword is a property of that name.
  const bool has_property =
      std::any_of(parameters.items().begin(), parameters.items().end(), [&](const auto& member) {
        return !schema::find_keyword(member.first) && describes(member.second);
      });
  bool is_map = false;
  for (const auto& [name, value] : parameters.items()) {
    if (name.starts_with("x-") || name.starts_with('$')) continue;
    // These name no parameter, whatever stands beside them.
    const bool is_of_others = name == "additionalProperties" || name == "unevaluatedProperties";
    if (has_property && !is_of_others &&
        (describes(value) || (name == "required" && value.is_array()))) {
      is_map = true;
      continue;
    }
    if (!value.is_object()) {
      // A keyword with a value that is not an object: this is a schema.
      if (schema::find_keyword(name)) return std::nullopt;
      is_map = is_map || value.is_string();
      continue;
    }
    const auto keyword   = schema::find_keyword(name);
    const bool is_schema = keyword && (keyword->shape == schema::KeywordShape::map ||
                                       keyword->shape == schema::KeywordShape::schema ||
                                       keyword->shape == schema::KeywordShape::either);
    if (is_schema) return std::nullopt;
    is_map = is_map || !keyword || keyword->shape == schema::KeywordShape::value ||
             value.contains("type") || value.contains("description");
  }
  if (!is_map) return std::nullopt;
  Json properties = Json::object();
  std::optional<Json> required;
  for (const auto& [name, value] : parameters.items()) {
    if (name.starts_with("x-") || name.starts_with('$')) continue;
    if (name == "required" && value.is_array()) {
      required = value;
      continue;
    }
    if (!value.is_object()) {
      throw Error(
          Errc::malformed_document, text::extend_pointer(pointer, name),
          "parameters are neither a schema nor a map of properties: a property is described "
          "by an object");
    }
    properties[name] = value;
  }
  note(Reading::property_map, pointer, "the members are read as \"properties\"");
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (required) schema["required"] = *std::move(required);
  return schema;
}

TOOLDECODE_INLINE bool DocumentReader::has_applicator(const Json& schema) {
  for (const char* key : {"allOf", "anyOf", "oneOf", "not", "if", "then", "else",
                          "dependentSchemas", "dependencies", "dependentRequired", "contains",
                          "patternProperties", "$ref", "$dynamicRef", "$recursiveRef"}) {
    if (schema.contains(key)) return true;
  }
  return false;
}

TOOLDECODE_INLINE bool DocumentReader::has_free_reference(const Json& value) {
  BuildBudget::spend(2);
  if (value.is_array()) {
    return std::any_of(value.begin(), value.end(), has_free_reference);
  }
  if (!value.is_object()) return false;
  for (const auto& [name, member] : value.items()) {
    const std::string_view key = name;
    if (key == "$dynamicRef" || key == "$recursiveRef" || key == "$id" || key == "$anchor") {
      return true;
    }
    if (key == "$ref" && member.is_string()) {
      const auto& target = member.string();
      if (!target.starts_with("#/$defs/") && !target.starts_with("#/definitions/")) return true;
    }
    if (has_free_reference(member)) return true;
  }
  return false;
}

TOOLDECODE_INLINE bool DocumentReader::is_silent(const Json& schema) {
  for (const auto& [name, value] : schema.items()) {
    const std::string_view key = name;
    if (key == "type" || key == "$defs" || key == "definitions" || key == "maxProperties") continue;
    if (schema::is_annotation_keyword(key)) continue;
    const bool is_empty = (key == "properties" || key == "required") && value.empty();
    if (!is_empty) return false;
  }
  return true;
}

TOOLDECODE_INLINE void DocumentReader::note_unknown(const Json& schema,
                                                    const std::string& pointer) {
  for (const auto& [name, value] : schema.items()) {
    const std::string_view key = name;
    if (key == "format" && value.is_string()) {
      if (text::is_standard_format(value.string())) continue;
      note(Reading::unknown_format, text::extend_pointer(pointer, key),
           "the format " + value.text() + " is not known and not enforced");
      continue;
    }
    if (schema::find_keyword(key)) continue;
    BuildBudget::spend_at(pointer, 1'000, 0);
    if (const auto meant = schema::find_near_keyword(key)) {
      note(
          Reading::unknown_keyword, text::extend_pointer(pointer, key),
          '"' + name + "\" is no keyword and says nothing; \"" + std::string(*meant) + "\" is one");
    }
  }
}

TOOLDECODE_INLINE void DocumentReader::close(Json& schema, const std::string& pointer,
                                             Surroundings place) {
  if (place.tests || schema.contains("additionalProperties") ||
      schema.contains("unevaluatedProperties") || schema.contains("propertyNames")) {
    return;
  }
  const auto listed = schema.find("properties");
  if (listed != schema.end() && !listed->is_object()) return;  // the schema compiler says so
  if (listed == schema.end() || listed->empty()) {
    if (!place.top || !is_silent(schema)) return;
    schema["properties"]           = Json::object();
    schema["additionalProperties"] = false;
    note(Reading::no_arguments, pointer, "no properties: the call takes no arguments");
    return;
  }
  if (place.combined || has_applicator(schema)) {
    note(Reading::closed_object, pointer, "names that no schema of this object has are forbidden");
    return;
  }
  describe_required(schema, pointer);
  schema["additionalProperties"] = false;
  note(Reading::closed_object, pointer, "names other than those of \"properties\" are forbidden");
}

TOOLDECODE_INLINE void DocumentReader::describe_required(Json& schema, const std::string& pointer) {
  const auto required = schema.find("required");
  if (lenient_.unknown_required || required == schema.end() || !required->is_array()) return;
  if (schema.contains("patternProperties")) return;
  const auto names = names_of(schema["properties"]);
  std::vector<std::string> unknown;
  for (const Json& name : *required) {
    if (name.is_string() && !names.contains(name.string())) {
      unknown.push_back(name.get<std::string>());
    }
  }
  for (const std::string& name : unknown) {
    schema["properties"][name] = true;
    note(Reading::unknown_required, text::extend_pointer(pointer, "required"),
         "the required name " + Json(name).text() + " is no property: it has any value");
  }
}

TOOLDECODE_INLINE void DocumentReader::drop_unknown_required(Json& schema,
                                                             const std::string& pointer) {
  if (!lenient_.unknown_required || !schema.contains("required") ||
      !schema["required"].is_array() || !schema.contains("properties") ||
      schema.contains("patternProperties") || !schema.contains("additionalProperties") ||
      schema["additionalProperties"] != false) {
    return;
  }
  Json kept        = Json::array();
  const auto names = names_of(schema["properties"]);
  for (const Json& name : schema["required"]) {
    if (!name.is_string() || names.contains(name.string())) {
      kept.push_back(name);
    } else {
      note(Reading::unknown_required, text::extend_pointer(pointer, "required"),
           "the required name " + name.text() + " is no property and dropped");
    }
  }
  schema["required"] = std::move(kept);
}

TOOLDECODE_INLINE bool DocumentReader::admits_null(const Json& schema) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (!schema.is_object()) return false;
  BuildBudget::spend(10 + 5 * schema.size());
  if (is_flagged(schema)) return true;
  const auto some = [&](const Json& branches) {
    return branches.is_array() && std::any_of(branches.begin(), branches.end(), admits_null);
  };
  const auto every = [&](const Json& branches) {
    return branches.is_array() && std::all_of(branches.begin(), branches.end(), admits_null);
  };
  // If several branches admit it, none counts in oneOf, so the others must exclude it.
  const auto one = [&](const Json& branches) {
    return branches.is_array() && !branches.empty() && some(branches) &&
           std::count_if(branches.begin(), branches.end(), excludes_null) + 1 ==
               static_cast<std::ptrdiff_t>(branches.size());
  };
  return !excludes_null(schema) && !schema.contains("$ref") && !schema.contains("$dynamicRef") &&
         !schema.contains("not") && !schema.contains("if") &&
         !(schema.contains("anyOf") && !some(schema["anyOf"])) &&
         !(schema.contains("oneOf") && !one(schema["oneOf"])) &&
         !(schema.contains("allOf") && !every(schema["allOf"]));
}

TOOLDECODE_INLINE bool DocumentReader::excludes_null(const Json& schema) {
  if (schema.is_boolean()) return !schema.get<bool>();
  if (!schema.is_object() || is_flagged(schema)) return false;
  return (schema.contains("type") && !is_of_type(nullptr, schema["type"])) ||
         (schema.contains("enum") && schema["enum"].is_array() && !has(schema["enum"], nullptr)) ||
         (schema.contains("const") && !schema["const"].is_null());
}

TOOLDECODE_INLINE bool DocumentReader::is_flagged(const Json& schema) {
  const auto flag = schema.find("nullable");
  return flag != schema.end() && *flag == true;
}

TOOLDECODE_INLINE bool DocumentReader::take_nullable(Json& schema, const std::string& pointer) {
  if (!schema.contains("nullable")) return false;
  const Json flag = schema["nullable"];
  if (!flag.is_boolean()) {
    throw Error(Errc::malformed_schema, text::extend_pointer(pointer, "nullable"),
                "must be true or false");
  }
  schema.erase("nullable");
  return flag.get<bool>();
}

TOOLDECODE_INLINE void DocumentReader::admit_null(Json& schema, const std::string& pointer) {
  const bool flagged    = take_nullable(schema, pointer);
  const bool by_default = schema.contains("default") && schema["default"].is_null();
  if ((!flagged && !by_default) || admits_null(schema)) return;
  if (!flagged && !lenient_.null_default) {
    if (excludes_null(schema)) {
      note(Reading::nullable, pointer, "the default, null, does not conform to the schema");
    }
    return;
  }
  note(Reading::nullable, pointer,
       flagged ? "null is admitted: \"nullable\" is true" : "null is admitted: it is the default");
  // Widened in place, because its content may be large.
  std::optional<Json> type;
  bool in_enum = false;
  if (schema.contains("type")) {
    type       = schema["type"];
    Json types = type->is_array() ? *type : Json::array({*type});
    if (!has(types, "null")) types.push_back("null");
    schema["type"] = std::move(types);
  }
  if (schema.contains("enum") && schema["enum"].is_array() && !has(schema["enum"], nullptr)) {
    schema["enum"].push_back(nullptr);
    in_enum = true;
  }
  // A branch more, at the end: references to the others still lead to them.
  std::vector<std::string> widened;
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!schema.contains(keyword) || !schema[keyword].is_array()) continue;
    if (std::any_of(schema[keyword].begin(), schema[keyword].end(), admits_null)) continue;
    schema[keyword].push_back(Json{{"type", "null"}});
    widened.emplace_back(keyword);
  }
  if (admits_null(schema)) return;
  if (type) schema["type"] = *type;
  if (in_enum) schema["enum"].erase(schema["enum"].size() - 1);
  for (const std::string& keyword : widened) schema[keyword].erase(schema[keyword].size() - 1);
  // The schema compiler reads the keyword: a schema around this one would move what references lead
  // to and what errors name.
  schema["nullable"] = true;
}

TOOLDECODE_INLINE char DocumentReader::lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace tooldecode::tools
