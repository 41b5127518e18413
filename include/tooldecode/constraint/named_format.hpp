/// \file
/// NamedFormat: call formats as values with names, to choose one at run time.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/delimited_call.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/harmony_call.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/positional_call.hpp>
#include <tooldecode/tools/python_call.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/xml_call.hpp>

namespace tooldecode {

/// A type-erased call format.
///
/// \par Threads     the functions may run concurrently
/// \par Errors      those of the format
struct NamedFormat {
  std::string name;
  tools::ReasoningDelimiters reasoning;
  std::function<std::string(std::span<const ToolCall>, const ToolSet&)>
      write_for;  ///< see write_calls
  std::function<std::vector<ToolCall>(std::string_view, const ToolSet&)> parse;
  std::function<ToolCallFSM(const VocabularyIndex&, const ToolSet&, const ChoiceOptions&)>
      constrain;

  [[nodiscard]] std::string write(std::span<const ToolCall> calls, const ToolSet& tools = {}) const;
};

/// Makes a named format.
///
/// \param reasoning  delimiters of the models that use it
[[nodiscard]] NamedFormat make_named_format(std::string name, const tools::AnyFormat& format,
                                            tools::ReasoningDelimiters reasoning = {});

/// All formats of the library.
[[nodiscard]] const std::vector<NamedFormat>& named_formats();

/// The names of all formats as a list for an error message.
[[nodiscard]] std::string format_names();

/// The format with a name; Error{unknown_format} lists the names.
[[nodiscard]] const NamedFormat& format_named(std::string_view name);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/named_format.ipp>
#endif
