/// \file
/// Names of tools and arguments that a call format can carry: `parse` reads back what `write`
/// wrote.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool.hpp>

namespace tooldecode::formats {

/// The JSON pointer of a tool's name.
std::string name_pointer(const Tool& tool);
/// The JSON pointer of an argument.
std::string argument_pointer(const Tool& tool, const std::string& key);

[[noreturn]] void refuse_name(const std::string& where, const std::string& name,
                              const std::string& why);
/// Throws Error{unsupported_name} if `why` says why a format cannot write a tool's name.
void refuse_tool(const Tool& tool, const std::optional<std::string>& why);
/// Throws Error{unsupported_name} if `why` says why a format cannot write an argument's name.
void refuse_argument(const Tool& tool, const std::string& key,
                     const std::optional<std::string>& why);

/// True where a name is empty, or begins or ends with white space.
bool has_outer_space(std::string_view name);

/// Why a name cannot stand between delimiters: it holds one, or its end and the delimiter after it
/// could be cut in two ways. Empty where it can.
///
/// \param delimiters  empty ones are ignored
std::optional<std::string> why_not_carried(const std::string& name,
                                           std::span<const std::string_view> delimiters,
                                           std::string_view behind);

/// True where a text may be the name of an unknown tool.
bool is_name(std::string_view name);

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/carried_name.ipp>
#endif
