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
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// A type-erased call format.
///
/// \par Threads     the functions may run concurrently
/// \par Errors      those of the format
struct NamedFormat {
  std::string name;
  formats::ReasoningDelimiters reasoning;
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
[[nodiscard]] NamedFormat make_named_format(std::string name, const formats::AnyFormat& format,
                                            formats::ReasoningDelimiters reasoning = {});

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
