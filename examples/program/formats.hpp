/// \file
/// The call formats by name, as values: what the command line chooses at run time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/python_call.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace program {

/// What opens the calls of an answer.
struct CallMark {
  std::string text;
  bool only_at_start = false;  ///< as CallFormat has it
};

/// A call format behind functions.
struct Format {
  std::string name;
  CallMark mark;
  std::function<std::string(std::span<const tooldecode::ToolCall>)> write;
  std::function<std::vector<tooldecode::ToolCall>(std::string_view, const tooldecode::ToolSet&)>
      parse;
  std::function<tooldecode::ToolCallFSM(const tooldecode::MaskCache&, const tooldecode::ToolSet&,
                                        const tooldecode::ChoiceOptions&)>
      constrain;
};

/// A format as functions.
template <class F>
Format make_format(std::string name, F format) {
  return {std::move(name),
          {std::string(format.trigger()), format.only_at_start()},
          [format](std::span<const tooldecode::ToolCall> calls) { return format.write(calls); },
          [format](std::string_view text, const tooldecode::ToolSet& tools) {
            return format.parse(text, tools);
          },
          [format](const tooldecode::MaskCache& cache, const tooldecode::ToolSet& tools,
                   const tooldecode::ChoiceOptions& choice) {
            return tooldecode::ToolCallFSM(cache, tools, format, choice);
          }};
}

/// The format of a name; Error{unknown_format} lists the names.
inline const Format& format_named(std::string_view name) {
  static const std::vector<Format> formats{
      make_format("python", tooldecode::PythonCall{}),
      make_format("hermes", tooldecode::JsonCall::hermes()),
  };
  for (const Format& format : formats) {
    if (format.name == name) return format;
  }
  throw tooldecode::Error(tooldecode::Errc::unknown_format, std::string(name),
                          "no such call format; there are python and hermes");
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
