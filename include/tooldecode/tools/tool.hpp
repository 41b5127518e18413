/// \file
/// Tool: one tool that a model may call, as its document describes it.
#pragma once

#include <cstdint>
#include <string>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// The form of a tool's document; each document decides by its own members.
enum class DocumentForm : std::uint8_t {
  openai,    ///< `{"type": "function", "function": {...}}`, or `{"name", "parameters"}` alone; also
             ///< Gemini's `functionDeclarations`
  mcp,       ///< `{"name", "inputSchema", "annotations"}`; also `input_schema`, and Bedrock's
             ///< `{"toolSpec": {"name", "inputSchema": {"json": {...}}}}`
  bfcl,      ///< `{"name", "parameters"}` with Python's type names: `"type": "dict"`
  api_bank,  ///< `{"name", "input_parameters": {"p": {"type": "str"}}}`, `json_schema` and
             ///< `defaults`
  custom,    ///< `{"type": "custom", "custom": {"name", "format"}}`, see custom_tool.hpp
};

/// One tool, as its document describes it.
struct Tool {
  std::string name;
  std::string description;
  /// The schema of a call's arguments: JSON Schema of an object, see document_readings.hpp. It keeps
  /// `"nullable": true` beside `$ref`, `const`, `not`, `if` and `allOf`; formats::parameter_rules
  /// reads it.
  JsonValue parameters{};
  std::string parameters_pointer{};  ///< where the schema is in the document
  bool strict = true;                ///< false where the document says `"strict": false`
  JsonValue documented{};            ///< the documented schema where it is not enforced as it is
  std::string document{};            ///< JSON text with the members as given; spacing may differ
  DocumentForm form = DocumentForm::openai;
  bool read_only    = false;  ///< true where MCP's `annotations.readOnlyHint` is true, and nowhere
                              ///< else
};

/// The schema that the document gives for the arguments, enforced or not: models see it, and
/// defaults come from it.
[[nodiscard]] inline const JsonValue& documented_parameters(const Tool& tool) {
  return tool.documented.is_null() ? tool.parameters : tool.documented;
}

}  // namespace tooldecode
