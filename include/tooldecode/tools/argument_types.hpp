/// \file
/// with_types_only: tools of which no more is known than the types of their arguments, as ToolDec
/// has them.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/tools/tool_set.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::tools {

namespace detail {

/// The JSON types that a schema says a value has; none where it does not say.
inline std::set<std::string> types_of(const nlohmann::ordered_json& schema,
                                      const nlohmann::ordered_json& root, std::size_t depth = 0) {
  using Json                      = nlohmann::ordered_json;
  constexpr std::size_t max_depth = 32;  // references may go round
  if (!schema.is_object() || depth == max_depth) return {};
  const auto type_of = [](const Json& value) -> std::string {
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
    const auto& text = target->get_ref<const std::string&>();
    if (!text.starts_with("#/")) return {};
    try {
      return types_of(root.at(Json::json_pointer(text.substr(1))), root, depth + 1);
    } catch (const Json::exception&) {
      return {};  // an error once the whole schema is read
    }
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

}  // namespace detail

/// The same tools, names and keys, with nothing of an argument's schema but its type: a baseline
/// for what the rest of the schema is worth.
///
/// Keys keep their order and those that are required stay so, since ToolDec chains the machines of
/// all of a tool's arguments; other keys are refused. An argument may be any value of its types, an
/// array or object with anything in it; any value where its schema does not say. A tool that is not
/// strict stays so. Calls are to be judged by the tools as they were given.
///
/// \par Complexity  O(size of the documents)
/// \par Errors      none beyond those of ToolSet
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3.2; Tool Decoding, appendix F
///                  and Table 6
[[nodiscard]] inline ToolSet with_types_only(const ToolSet& tools) {
  using Json     = nlohmann::ordered_json;
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
