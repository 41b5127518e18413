/// \file
/// JsonCall: calls as JSON objects between delimiters, as Hermes and Qwen write them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

namespace formats {

/// Delimiters around one call that replace the format's usual ones.
struct CallFence {
  std::string begin;
  std::string end;
};

}  // namespace formats

/// `{"name": "f", "arguments": {...}}` with delimiters around each call, around all calls, or
/// without any.
///
/// Text may precede the first delimiter, but not calls without delimiters. `write` and `parse`
/// treat delimiters as text; a vocabulary may have them as control tokens.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite
/// \par Source      NousResearch, Hermes; Salesforce, xLAM; chat templates of Qwen2.5, Llama 3.1,
///                  Mistral 7B v0.3 and Nemo, EXAONE 4, Granite 3, Nemotron Nano v2, Apriel,
///                  Phi-4-mini, FireFunction v2, GigaChat 3, InternLM 2.5, Apertus, Command R+ and
///                  R7B
struct JsonCall {
  std::string begin;      ///< opens a call; if empty, the answer begins with the JSON
  std::string end;        ///< closes a call
  std::string separator;  ///< between the delimiters and the object, and between calls
  std::string arguments = "arguments";  ///< key of the arguments
  std::optional<std::string>
      between{};                 ///< between calls; if set, the delimiters surround all calls
  bool list           = false;   ///< the calls are a JSON array
  bool bare_at_start  = false;   ///< calls at the start of an answer need no opening delimiter
  std::string call_id = "";      ///< key of a call's id, which may follow; `parse` drops it
  std::string name    = "name";  ///< key of the name; if empty, the name is the arguments' key
  std::string number  = "";      ///< key of the call's number, a string of digits before the name;
                                 ///< `parse` drops it
  std::string open  = "[";       ///< opens the array
  std::string close = "]";       ///< closes the array
  std::optional<std::string> before_end{};  ///< before a call's end; by default the separator
  formats::TextFrame response{};            ///< what may surround text
  /// Other delimiters with which models open calls where text may be. What follows one is a call if
  /// it is an object that begins with a tool's name in one of the usual layouts, and text
  /// otherwise. A fence with an empty `begin` applies to the answer's first object only.
  std::vector<formats::CallFence> fences{};
  bool only_fences = false;  ///< where text may be, only `fences` open calls
  /// The value of the key `type`, which models may write before the name; `parse` drops it. If
  /// empty, calls have no type.
  std::string call_type{};

  /// The language of values.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;
  static constexpr bool shares_parts                    = true;

  /// `<tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>` for each call.
  [[nodiscard]] static JsonCall hermes() { return {"<tool_call>", "</tool_call>", "\n"}; }
  /// As hermes. An answer that may be text may also hold calls in ```` ```json ```` blocks, or
  /// begin with a bare call, with any white space: Qwen2.5-Coder, which shares Qwen2.5's template,
  /// writes these.
  [[nodiscard]] static JsonCall qwen_2_5();
  /// `<|python_tag|>{"name": ..., "parameters": {...}}; {...}`. An answer that begins with a call
  /// needs no tag. `"type": "function"` may precede the name, as the models often write it.
  [[nodiscard]] static JsonCall llama();
  /// `[TOOL_CALLS] [{"name": ..., "arguments": {...}}, {...}]`; a call may have an `"id"`.
  [[nodiscard]] static JsonCall mistral();
  /// `{"name": ..., "arguments": {...}}` and nothing else; each further call is on its own line.
  [[nodiscard]] static JsonCall bare() { return {"", "", "", "arguments", "\n"}; }
  /// `[{"name": ..., "arguments": {...}}, {...}]` and nothing else.
  [[nodiscard]] static JsonCall bare_list() { return {"", "", "", "arguments", ", ", true}; }

  /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` for each call.
  [[nodiscard]] static JsonCall exaone() { return {"<tool_call>", "</tool_call>", ""}; }
  /// As hermes, with `longcat_tool_call` for `tool_call`.
  [[nodiscard]] static JsonCall longcat() {
    return {"<longcat_tool_call>", "</longcat_tool_call>", "\n"};
  }
  /// `<|tool_call|>[{"name": ..., "arguments": {...}}, {...}]`.
  [[nodiscard]] static JsonCall granite();
  /// `<TOOLCALL>[{"name": ..., "arguments": {...}}, {...}]</TOOLCALL>`.
  [[nodiscard]] static JsonCall nemotron();
  /// `<tool_calls>[{"name": ..., "arguments": {...}}, {...}]</tool_calls>`.
  [[nodiscard]] static JsonCall apriel();
  /// `<|tool_call|>[{"name": ..., "arguments": {...}}, {...}]<|/tool_call|>`.
  [[nodiscard]] static JsonCall phi_4_mini();
  /// `functools[{"name": ..., "arguments": {...}}, {...}]`.
  [[nodiscard]] static JsonCall firefunction();
  /// `<|function_call|>{"name": ..., "arguments": {...}}`.
  [[nodiscard]] static JsonCall gigachat_3_1();
  /// `function call<|role_sep|>\n{"name": ..., "arguments": {...}}`.
  [[nodiscard]] static JsonCall gigachat_3();
  /// `<|action_start|><|plugin|>\n{"name": ..., "parameters": {...}}<|action_end|>`.
  [[nodiscard]] static JsonCall internlm();
  /// `<|tools_prefix|>[{"f": {...}}, {"g": {...}}]<|tools_suffix|>`.
  [[nodiscard]] static JsonCall apertus();
  /// `<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "f", "parameters": {...}}\n]` and
  /// `<|END_ACTION|>`; text is a response between its own delimiters.
  [[nodiscard]] static JsonCall command_r7b();
  /// ```` Action:\n```json\n[{"tool_name": "f", "parameters": {...}}]\n``` ````.
  [[nodiscard]] static JsonCall command_r_plus();
  /// ```` ```json\n{"name": ..., "arguments": {...}}\n``` ```` for each call.
  [[nodiscard]] static JsonCall fence() { return {"```json", "```", "\n"}; }

  [[nodiscard]] std::string_view trigger() const noexcept;
  [[nodiscard]] bool only_at_start() const noexcept { return begin.empty(); }
  [[nodiscard]] const formats::TextFrame& frame() const noexcept { return response; }

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;

  /// The calls of an answer. There are none without an opening delimiter, or without the JSON at
  /// the start where the format has no delimiter.
  ///
  /// \param tools  their names tell a call in `fences` from text
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// The first call's object, its closing delimiter and further calls: after the opening delimiter,
  /// or after a brace at the start of an answer.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // The openings without `begin`, for answers that may be text.
  void append_fences(std::vector<CallOpening>& openings, Grammar& grammar, const ToolSet& tools,
                     const std::vector<std::pair<std::string, NodeId>>& named,
                     const ChoiceOptions& options) const;
  [[nodiscard]] std::vector<std::pair<std::string, NodeId>> names(
      Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
      const ChoiceOptions& options) const;
  [[nodiscard]] ToolCall parse_call(text::ValueReader& reader) const;
  // Everything in a call's object up to the key of the name.
  [[nodiscard]] NodeId before_name(Grammar& grammar, const ChoiceOptions& options) const;
  [[nodiscard]] const std::string& before_last() const;
  // Reads calls between one pair of delimiters, up to the end of the text.
  void parse_all(text::ValueReader& reader, std::vector<ToolCall>& calls) const;
};
static_assert(CallFormat<JsonCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/json_call.ipp>
#endif
