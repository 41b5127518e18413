/// \file
/// OpenAI's custom tools: tools whose calls carry one text, which a grammar may constrain.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/tools/document_readings.hpp>

namespace tooldecode::tools {

/// The one argument of a call to a custom tool: its text, unescaped, is what the tool is given.
inline constexpr std::string_view custom_input = "input";

/// Whether a tool's document is a custom tool's. One of the type `custom` with a schema is
/// Anthropic's form of a function.
[[nodiscard]] bool is_custom_tool(const JsonValue& document);

/// The schema of a custom tool's arguments: an object of one string, which matches the grammar from
/// its first character to its last.
///
/// The grammar stands as chat completions or as responses write it: `{"type": "grammar", "grammar":
/// {"syntax", "definition"}}`, or syntax and definition beside the type. A `regex` is a pattern of
/// this library, see compile_pattern.
///
/// \param body     with the tool's name and its `format`, if it has one
/// \param pointer  where it stands
///
/// \par Complexity  as compile_whole_pattern
/// \par Errors      Error{malformed_document}; Error{unsupported_keyword} for the syntax `lark`;
///                  those of compile_whole_pattern with the pointer of the definition
[[nodiscard]] JsonValue custom_parameters(const JsonValue& body, const std::string& pointer);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/custom_tool.ipp>
#endif
