#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/research/argument_types.hpp>

namespace tooldecode::tools::detail {

TOOLDECODE_INLINE std::set<std::string> types_of(const JsonValue& schema, const JsonValue& root,
                                                 std::size_t depth) {
  using Json                      = JsonValue;
  constexpr std::size_t max_depth = 32;  // references may form cycles
  if (!schema.is_object() || depth == max_depth) return {};
  const auto type_of = [](const Json& value) -> std::string {
    if (value.is_exact()) return "integer";
    if (value.is_number()) return value.is_number_float() ? "number" : "integer";
    return value.type_name();
  };
  std::set<std::string> types;
  if (const auto listed = schema.find("type"); listed != schema.end()) {
    if (listed->is_string()) return {listed->get<std::string>()};
    for (const Json& one : *listed) {
      if (one.is_string()) types.insert(one.get<std::string>());
    }
    return types;
  }
  if (const auto value = schema.find("const"); value != schema.end()) return {type_of(*value)};
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    for (const Json& value : *values) types.insert(type_of(value));
    return types;
  }
  if (const auto target = schema.find("$ref"); target != schema.end() && target->is_string()) {
    const auto& text = target->string();
    if (!text.starts_with("#/")) return {};
    const Json* const meant = root.find_at(std::string_view(text).substr(1));
    if (!meant) return {};  // reported as an error when the whole schema is read
    return types_of(*meant, root, depth + 1);
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    const auto branches = schema.find(key);
    if (branches == schema.end() || !branches->is_array()) continue;
    for (const Json& branch : *branches) {
      const auto found = types_of(branch, root, depth + 1);
      if (found.empty()) return {};
      types.insert(found.begin(), found.end());
    }
    return types;
  }
  return {};
}

}  // namespace tooldecode::tools::detail

namespace tooldecode::tools {

TOOLDECODE_INLINE ToolSet with_types_only(const ToolSet& tools) {
  using Json     = JsonValue;
  Json documents = Json::array();
  for (const Tool& tool : tools) {
    Json properties    = Json::object();
    const Json& schema = documented_parameters(tool);
    const auto listed  = schema.find("properties");
    for (const std::string& name : argument_names(tool)) {
      properties[name] = Json::object();
      if (listed == schema.end() || !listed->contains(name)) continue;
      const auto types = detail::types_of((*listed)[name], schema);
      if (!types.empty()) properties[name]["type"] = types;
    }
    documents.push_back({{"name", tool.name},
                         {"description", tool.description},
                         {"strict", tool.strict},
                         {"inputSchema",
                          {{"type", "object"},
                           {"properties", std::move(properties)},
                           {"required", required_names(tool)},
                           {"additionalProperties", false}}},
                         {"annotations", {{"readOnlyHint", tool.read_only}}}});
  }
  return ToolSet::from_json(std::move(documents));
}

}  // namespace tooldecode::tools
