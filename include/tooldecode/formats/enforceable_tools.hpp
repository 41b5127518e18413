/// \file
/// enforceable_tools: gives up what cannot be enforced and keeps the other tools as they are.
#pragma once

#include <memory>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/unenforced_tool.hpp>

namespace tooldecode {

/// The tools that a format can enforce, as ChoiceOptions::enforcement demands: those that it can
/// build stay as they are and are shared with `tools`; of the others the least is given up, each
/// with a note. With `strict` these are the tools that were passed.
///
/// ToolCallFSM and Grammar::tool_calls do this themselves where a build fails. Call it yourself
/// before ToolLibrary, once for each set of tools.
///
/// Each tool that may be called is built alone, with `limits` for each build. A fifth build that
/// costs more than the limits ends it. That all tools together cost more stays an error.
///
/// \par Complexity  O(size of the documents), and the limits for each tool that exceeds them
/// \par Threads     may run concurrently
/// \par Errors      the tool's, if a named tool or the last one of a required call would be left
///                  out; errors that concern no tool: cancelled, unknown_tool, invalid_option
[[nodiscard]] ToolSet enforceable_tools(const formats::AnyFormat& format, const ToolSet& tools,
                                        const ChoiceOptions& options);

namespace formats {

/// What `make` builds of the tools, or where that fails, of what enforceable_tools leaves of them.
///
/// \par Errors      those of `make` and of enforceable_tools
template <class Make>
[[nodiscard]] auto build_enforceable(const AnyFormat& format,
                                     const std::shared_ptr<const ToolSet>& tools,
                                     const ChoiceOptions& options, const Make& make) {
  try {
    const BuildBudget budget(options.limits);
    return make(tools);
  } catch (const Error& error) {
    if (options.enforcement == ToolEnforcement::strict || !tools::is_of_one_tool(error.code())) {
      throw error.under("#");
    }
  }
  const BuildBudget::Pause pause;  // the budget may be spent
  const auto enforced = std::make_shared<const ToolSet>(enforceable_tools(format, *tools, options));
  const BuildBudget budget(options.limits);
  try {
    return make(enforced);
  } catch (const Error& error) {
    throw error.under("#");
  }
}

}  // namespace formats

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/enforceable_tools.ipp>
#endif
