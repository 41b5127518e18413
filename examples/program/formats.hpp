/// \file
/// Choices of the command line: a call format by name, reasoning, tool choice.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/format_set.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/named_format.hpp>

#include <program/command_line.hpp>

namespace program {

using Format = tooldecode::NamedFormat;
using tooldecode::format_names;

/// The value of --format for the formats of the model's template, see Assistant::format.
inline constexpr const char* automatic_format = "auto";

/// What --format may be, for --help.
inline std::string format_values() {
  return format_names() +
         ", several with commas between them, or a .json file with a description; auto: the model's "
         "own template's, and what models of its family fall back to";
}

/// The format or formats with a name, or the one that a .json file describes. Files are read once.
inline const Format& format_named(const std::string& name) {
  static std::map<std::string, Format> made;
  static std::mutex lock;
  const std::scoped_lock guard(lock);
  const auto known = made.find(name);
  if (known != made.end()) return known->second;
  const bool is_file = name.ends_with(".json");
  try {
    return made
        .emplace(name, is_file ? tooldecode::formats::read_format(tooldecode::core::read_file(name))
                               : tooldecode::format_set(name))
        .first->second;
  } catch (const tooldecode::Error& error) {
    if (!is_file || error.code() == tooldecode::Errc::file_unreadable) throw;
    throw error.within(name);
  }
}

/// Refuses a --format that names no format, before a model is loaded.
inline void check_format(const std::string& name) {
  if (!name.empty() && name != automatic_format) static_cast<void>(format_named(name));
}

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

inline void add_reasoning_option(Command& sub, std::string& reasoning) {
  sub.option(
         "--reasoning", reasoning,
         "before the answer: no, block where it may be, or open where the prompt has opened one "
         "that the answer closes")
      .shows_default();
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
