/// \file
/// Names of tools and arguments that a call format can carry: written and read they stay the same.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::tools {

/// Where a tool's name stands in the documents.
std::string name_pointer(const Tool& tool);
/// Where an argument stands.
std::string argument_pointer(const Tool& tool, const std::string& key);

[[noreturn]] void refuse_name(const std::string& where, const std::string& name,
                              const std::string& why);
/// Throws where there is a reason why a format cannot write a tool's name.
void refuse_tool(const Tool& tool, const std::optional<std::string>& why);
/// Throws where there is a reason why a format cannot write an argument's name.
void refuse_argument(const Tool& tool, const std::string& key,
                     const std::optional<std::string>& why);

/// Whether a name has white space before or behind it.
bool has_outer_space(std::string_view name);

/// Why a name cannot stand between delimiters: it holds one, or runs into the one behind it.
/// Nothing where it can.
///
/// \param delimiters  those that are empty are passed over
std::optional<std::string> why_not_carried(const std::string& name,
                                           std::span<const std::string_view> delimiters,
                                           std::string_view behind);

/// Whether a text may be the name of a tool that is not known.
bool is_name(std::string_view name);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/carried_name.ipp>
#endif
