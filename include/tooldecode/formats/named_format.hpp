/// \file
/// NamedFormat: call formats as values with names, to choose one at run time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// A call format with a name, and the reasoning block of the models that use it.
///
/// `ToolCallFSM(index, tools, named.format, choice)` constrains answers to it.
///
/// \par Complexity  a copy O(length of the texts)
/// \par Threads     const members may run concurrently
/// \par Errors      those of the format
struct NamedFormat {
  std::string name;
  formats::AnyFormat format;
  formats::ReasoningDelimiters reasoning{};

  [[nodiscard]] std::string write(std::span<const ToolCall> calls,
                                  const ToolSet& tools = {}) const {
    return format.write(calls, tools);
  }
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const {
    return format.parse(text, tools);
  }
};

/// All formats of the library.
[[nodiscard]] const std::vector<NamedFormat>& named_formats();

/// The names of all formats as a list for an error message.
[[nodiscard]] std::string format_names();

/// The format with a name; Error{unknown_format} lists the names.
[[nodiscard]] const NamedFormat& format_named(std::string_view name);

/// The format of a checkpoint that adds a suffix to the tokens of its family, such as
/// `hunyuan-4:6124c78e` for `<tool_calls:6124c78e>`; nullopt for other names.
[[nodiscard]] std::optional<NamedFormat> format_with_suffix(std::string_view name);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/named_format.ipp>
#endif
