/// \file
/// with_types_only: keeps only the types of tool arguments, as ToolDec does.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::tools {

namespace detail {

/// The JSON types that a schema allows; empty if it does not say.
std::set<std::string> types_of(const JsonValue& schema, const JsonValue& root,
                               std::size_t depth = 0);

}  // namespace detail

/// The same tools, names and keys, with only the type of each argument's schema: a baseline that
/// shows what the rest of a schema is worth.
///
/// Keys keep their order and required keys stay required, because ToolDec chains the machines of
/// all of a tool's arguments; other keys are refused. An argument may be any value of its types (an
/// array or object may contain anything), or any value if its schema does not say. A tool that is
/// not strict stays so. Judge the calls by the original tools.
///
/// \par Complexity  O(size of the documents)
/// \par Errors      none beyond those of ToolSet
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3.2; Tool Decoding, appendix F
///                  and Table 6
[[nodiscard]] ToolSet with_types_only(const ToolSet& tools);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/argument_types.ipp>
#endif
