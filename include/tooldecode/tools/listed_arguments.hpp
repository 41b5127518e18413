/// \file
/// A tool's arguments one by one, for formats that do not write them as one object.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/plain_text.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::tools {

/// An argument's schema and where it stands; of one that is not documented, that of any other.
struct ArgumentSchema {
  const JsonValue* schema;
  std::string pointer;
};

/// \par Complexity  O(arguments)
/// \par Threads     pure; refers to the tool
[[nodiscard]] ArgumentSchema argument_schema(const Tool& tool, const std::string& key);

/// The same where strings go without quotes. Of a tool that is not strict: any string, or null, where
/// the document has no more than that, since a text does not tell by itself what it is; else as
/// above.
///
/// \par Complexity  O(arguments), and where the tool is not strict, as Reader
[[nodiscard]] ArgumentSchema plain_argument_schema(const Tool& tool, const std::string& key);

/// Whether a keyword of an object speaks of single properties, or of no object.
[[nodiscard]] bool says_nothing_of_all(std::string_view keyword);

/// Says what is wrong with a tool's parameters: as an object, and as arguments one by one.
///
/// \par Complexity  as SchemaCompiler
/// \par Threads     as the compiler
/// \par Errors      as SchemaCompiler; Error{unsupported_keyword} for what is said of all arguments
void check_listed_arguments(SchemaCompiler& compiler, const Tool& tool);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/listed_arguments.ipp>
#endif
