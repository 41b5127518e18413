/// \file
/// llama.cpp's grammar of tools, for calls as JSON.
#pragma once

#include <string>

#include <tooldecode/tools/tool_set.hpp>

#include <json-schema-to-grammar.h>
#include <json.h>
#include <program/json.hpp>

/// GBNF of one call, `{"name": ..., "arguments": {...}}`.
inline std::string json_grammar(const tooldecode::ToolSet& tools) {
  program::Json calls = program::Json::array();
  for (const tooldecode::Tool& tool : tools) {
    calls.push_back(
        {{"type", "object"},
         {"properties", {{"name", {{"const", tool.name}}}, {"arguments", tool.parameters}}},
         {"required", {"name", "arguments"}},
         {"additionalProperties", false}});
  }
  const program::Json schema = calls.size() == 1 ? calls[0] : program::Json{{"anyOf", calls}};
  return json_schema_to_grammar(common_json::parse(schema.text()));
}
