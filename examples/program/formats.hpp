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
#include <tooldecode/tools/delimited_call.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/harmony_call.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/positional_call.hpp>
#include <tooldecode/tools/python_call.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/xml_call.hpp>

namespace program {

/// A call format behind functions.
struct Format {
  std::string name;
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

/// A format as functions.
template <class F>
Format make_format(std::string name, F format,
                   tooldecode::tools::ReasoningDelimiters reasoning = {}) {
  return {std::move(name), std::move(reasoning),
          [format](std::span<const tooldecode::ToolCall> calls, const tooldecode::ToolSet& tools) {
            return tooldecode::write_calls(format, calls, tools);
          },
          [format](std::string_view text, const tooldecode::ToolSet& tools) {
            return format.parse(text, tools);
          },
          [format](const tooldecode::VocabularyIndex& cache, const tooldecode::ToolSet& tools,
                   const tooldecode::ChoiceOptions& choice) {
            return tooldecode::ToolCallFSM(cache, tools, format, choice);
          }};
}

/// Every format.
inline const std::vector<Format>& formats() {
  using tooldecode::HarmonyCall, tooldecode::JsonCall, tooldecode::DelimitedCall;
  using tooldecode::PositionalCall, tooldecode::PythonCall, tooldecode::XmlCall;
  static const std::vector<Format> all{
      make_format("python", PythonCall{}),
      make_format("hermes", JsonCall::hermes()),
      make_format("llama", JsonCall::llama()),
      make_format("mistral", JsonCall::mistral()),
      make_format("json", JsonCall::bare()),
      make_format("json-list", JsonCall::bare_list()),
      make_format("mistral-args", DelimitedCall::mistral(), {"[THINK]", "[/THINK]"}),
      make_format("deepseek-v3", DelimitedCall::deepseek_v3()),
      make_format("deepseek-v3.1", DelimitedCall::deepseek_v3_1()),
      make_format("kimi-k2", DelimitedCall::kimi_k2()),
      make_format("harmony", HarmonyCall{}, HarmonyCall::analysis()),
      make_format("react", DelimitedCall::react()),
      make_format("qwen3-coder", XmlCall::qwen3_coder()),
      make_format("glm", XmlCall::glm()),
      make_format("toolken", PositionalCall::toolken()),
      make_format("tooldec", PositionalCall::tool_dec()),
  };
  return all;
}

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
