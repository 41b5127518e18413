/// \file
/// The call formats by name, as values: what the command line chooses at run time.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace program {

/// What opens the calls of an answer.
struct CallDelimiter {
  std::string text;
  bool only_at_start = false;  ///< as CallFormat has it
};

/// A call format behind functions.
struct Format {
  std::string name;
  std::vector<CallDelimiter> delimiters;             ///< any of them opens calls
  tooldecode::tools::ReasoningDelimiters reasoning;  ///< of the models that write it
  std::function<std::string(std::span<const tooldecode::ToolCall>, const tooldecode::ToolSet&)>
      write_for;  ///< as tooldecode::write_calls has it
  std::function<std::vector<tooldecode::ToolCall>(std::string_view, const tooldecode::ToolSet&)>
      parse;
  std::function<tooldecode::ToolCallFSM(const tooldecode::VocabularyIndex&,
                                        const tooldecode::ToolSet&,
                                        const tooldecode::ChoiceOptions&)>
      constrain;

  [[nodiscard]] std::string write(std::span<const tooldecode::ToolCall> calls,
                                  const tooldecode::ToolSet& tools = {}) const {
    return write_for(calls, tools);
  }
};

/// Every format. Compiled once, in formats.cpp: the grammars of all formats are much to compile.
const std::vector<Format>& formats();

/// The names of all formats, for a sentence.
inline std::string format_names() {
  std::string names;
  for (std::size_t i = 0; i < formats().size(); ++i) {
    names += (i == 0 ? "" : i + 1 == formats().size() ? " or " : ", ") + formats()[i].name;
  }
  return names;
}

/// The format of a name; Error{unknown_format} lists the names.
inline const Format& format_named(std::string_view name) {
  for (const Format& format : formats()) {
    if (format.name == name) return format;
  }
  throw tooldecode::Error(tooldecode::Errc::unknown_format, std::string(name),
                          "no such call format; there is " + format_names());
}

/// Delimiters where a block of reasoning may precede an answer: no, block, or open where the prompt
/// has opened it.
inline std::optional<tooldecode::tools::ReasoningDelimiters> parse_reasoning(
    const std::string& text, const Format& format) {
  if (text == "no") return std::nullopt;
  tooldecode::tools::ReasoningDelimiters delimiters = format.reasoning;
  if (text == "open") {
    delimiters.begin.clear();
  } else if (text != "block") {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, text,
                            "reasoning is no, block or open");
  }
  return delimiters;
}

/// auto, none, required, or the name of the one tool to call.
inline tooldecode::ChoiceOptions parse_choice(const std::string& text) {
  using tooldecode::ToolChoice;
  if (text == "auto") return {.choice = ToolChoice::automatic};
  if (text == "none") return {.choice = ToolChoice::none};
  if (text == "required") return {.choice = ToolChoice::required};
  return {.choice = ToolChoice::named, .name = text};
}

}  // namespace program
