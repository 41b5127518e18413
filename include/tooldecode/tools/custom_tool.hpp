/// \file
/// OpenAI's custom tools: a call carries one text, which a grammar may constrain.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode::tools {

/// The one argument of a call to a custom tool; the tool receives its unescaped text.
inline constexpr std::string_view custom_input = "input";

/// True for the document of a custom tool. A document of type `custom` with a schema is Anthropic's
/// form of a function.
[[nodiscard]] bool is_custom_tool(const JsonValue& document);

/// The schema of a custom tool's arguments: an object with one string, which matches the whole
/// grammar.
///
/// The grammar has the form of chat completions, `{"type": "grammar", "grammar": {"syntax",
/// "definition"}}`, or that of responses, with syntax and definition beside the type. A `regex` is
/// a pattern of this library, see compile_pattern.
///
/// \param body     the tool's name and its optional `format`
/// \param pointer  the place of the body
///
/// \par Complexity  as compile_whole_pattern
/// \par Errors      Error{malformed_document}; Error{unsupported_keyword} for the syntax `lark`;
///                  those of compile_whole_pattern with the pointer of the definition
[[nodiscard]] JsonValue custom_parameters(const JsonValue& body, const std::string& pointer);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/custom_tool.ipp>
#endif
