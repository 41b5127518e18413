#pragma once

#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

TOOLDECODE_INLINE void fill_defaults(JsonValue& arguments, const JsonValue& schema) {
  if (!arguments.is_object() || !schema.is_object()) return;
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return;
  for (const auto& [name, property] : properties->items()) {
    if (!property.is_object()) continue;
    if (!arguments.contains(name)) {
      const auto standard = property.find("default");
      if (standard == property.end()) continue;
      arguments[name] = text::ExactNumber::as_argument(*standard);
    }
    fill_defaults(arguments[name], property);
  }
}

TOOLDECODE_INLINE std::string any_arguments_key(std::string_view tool) {
  return std::string(tool) + '\n';
}

TOOLDECODE_INLINE std::string_view any_arguments_part(std::string_view key) {
  return key.substr(0, key.rfind('\n') + 1);
}

TOOLDECODE_INLINE std::string call_key(const ToolCall& call, const Tool* tool) {
  // Canonical JSON has no line end, so the last one ends the name, whatever the name holds.
  if (!tool) return any_arguments_key(call.name) + canonical_json(call.arguments);
  JsonValue arguments = call.arguments;
  fill_defaults(arguments, documented_parameters(*tool));
  return any_arguments_key(call.name) + canonical_json(arguments);
}

}  // namespace tooldecode
