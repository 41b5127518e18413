/// \file
/// Choices of the command line: a call format by name, reasoning, tool choice.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <tooldecode/constraint/named_format.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/free_text.hpp>

#include <program/command_line.hpp>

namespace program {

using Format = tooldecode::NamedFormat;
using tooldecode::format_named;
using tooldecode::format_names;

/// Delimiters if a reasoning block may precede an answer: no, block, or open if the prompt has
/// opened it.
inline std::optional<tooldecode::formats::ReasoningDelimiters> parse_reasoning(
    const std::string& text, const Format& format) {
  if (text == "no") return std::nullopt;
  tooldecode::formats::ReasoningDelimiters delimiters = format.reasoning;
  if (text == "open") {
    delimiters.begin.clear();
  } else if (text != "block") {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, text,
                            "reasoning is no, block or open");
  }
  return delimiters;
}

inline void add_whitespace_option(Command& sub, std::size_t& bytes) {
  sub.option(
         "--whitespace", bytes,
         "most bytes of white space at each place of a call's JSON where the model may write some; 0: "
         "what the format itself writes")
      .shows_default()
      .within(0, 64);
}

/// strict, relax or drop.
inline tooldecode::ToolEnforcement parse_enforcement(const std::string& text) {
  using tooldecode::ToolEnforcement;
  if (text == "strict") return ToolEnforcement::strict;
  if (text == "relax") return ToolEnforcement::relax;
  if (text == "drop") return ToolEnforcement::drop;
  throw tooldecode::Error(tooldecode::Errc::invalid_option, "--enforcement", text,
                          "must be strict, relax or drop");
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
