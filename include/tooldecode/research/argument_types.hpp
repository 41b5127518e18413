/// \file
/// with_types_only: tools of which no more is known than the types of their arguments, as ToolDec
/// has them.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::tools {

namespace detail {

/// The JSON types that a schema says a value has; none where it does not say.
std::set<std::string> types_of(const JsonValue& schema, const JsonValue& root,
                               std::size_t depth = 0);

}  // namespace detail

/// The same tools, names and keys, with nothing of an argument's schema but its type: a baseline
/// for what the rest of the schema is worth.
///
/// Keys keep their order and those that are required stay so, since ToolDec chains the machines of
/// all of a tool's arguments; other keys are refused. An argument may be any value of its types, an
/// array or object with anything in it; any value where its schema does not say. A tool that is not
/// strict stays so. Calls are to be judged by the tools as they were given.
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
