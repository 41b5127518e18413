/// \file
/// UnenforcedTool: a tool of which less is enforced than its document says.
#pragma once

#include <optional>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/document_note.hpp>
#include <tooldecode/tools/tool.hpp>

namespace tooldecode::tools {

/// A tool and the note that says what is not enforced and why.
struct UnenforcedTool {
  Tool tool;
  Note note;
};

/// Whether an error concerns one tool, so that the others can be built without it.
[[nodiscard]] bool is_of_one_tool(Errc code) noexcept;

/// The tool without the keyword that an error names or, where a keyword cannot be taken out alone,
/// with any value in its place. All arguments that conformed still conform. Nullopt if the error
/// names no such place.
///
/// Within `not`, `if`, `oneOf` and the like, a schema that admits more would refuse values that
/// conform, so the schema around them is widened. A reference out of them may lead anywhere; then
/// nothing is widened.
///
/// \par Complexity  O(size of the schema)
/// \par Threads     may run concurrently
[[nodiscard]] std::optional<UnenforcedTool> widened_tool(const Tool& tool, const Error& error);

/// The schema of any object. It keeps the documented names, for formats that depend on their order.
[[nodiscard]] JsonValue any_arguments(const JsonValue& documented);

/// The tool with any object as arguments; a custom tool with any text.
[[nodiscard]] UnenforcedTool with_any_arguments(const Tool& tool, const Error& error);

/// The note of a tool that is left out.
[[nodiscard]] Note dropped_tool(const Tool& tool, const Error& error);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/unenforced_tool.ipp>
#endif
