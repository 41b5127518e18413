/// \file
/// JsonCall: calls as JSON objects between two delimiters, as Hermes and Qwen write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

namespace tools {

/// What stands around one call, in place of a format's usual delimiters.
struct CallFence {
  std::string begin;  ///< precedes the object
  std::string end;    ///< follows it
};

}  // namespace tools

/// `{"name": "f", "arguments": {...}}`, with delimiters around each call or around all of them, or
/// with none; text may precede the first delimiter, but not calls without delimiters.
///
/// The delimiters are text to `write` and `parse`; a vocabulary may have them as control tokens or
/// not.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite
/// \par Source      NousResearch, Hermes function calling; Salesforce, xLAM; chat templates of
///                  Qwen2.5, Llama 3.1, Mistral 7B v0.3 and Nemo, EXAONE 4, Granite 3, Nemotron
///                  Nano v2, Apriel, Phi-4-mini, FireFunction v2, GigaChat 3, InternLM 2.5, Apertus,
///                  Command R+ and R7B
struct JsonCall {
  std::string begin;      ///< opens a call; empty: the answer begins with the JSON
  std::string end;        ///< closes it
  std::string separator;  ///< between the delimiters and the object, and between calls
  std::string arguments = "arguments";  ///< the key of the arguments
  std::optional<std::string>
      between{};                ///< stands between calls: the delimiters are around them all
  bool list           = false;  ///< the calls are a JSON array
  bool bare_at_start  = false;  ///< calls that an answer begins with need no opening delimiter
  std::string call_id = "";     ///< the key of a name of the call, which may follow and is not kept
  std::string name    = "name";  ///< the key of the name; empty: the name is the arguments' key
  std::string number  = "";  ///< the key of the call's number, which precedes the name as a text
                             ///< of digits and is not kept
  std::string open  = "[";   ///< opens the array
  std::string close = "]";   ///< closes it
  std::optional<std::string> before_end{};  ///< before a call's end; nothing: the separator
  tools::TextFrame response{};              ///< what may stand around text
  /// Other ways in which models open calls where text may stand, with `begin` and `end` of their own;
  /// what stands behind one is a call where it is an object that begins with a tool's name, in one of
  /// the usual layouts, and text otherwise. Without a begin, only the answer's first object.
  std::vector<tools::CallFence> fences{};
  /// What the key `type` says of a call, where models write one before the name; it is not kept.
  /// Empty: a call has none.
  std::string call_type{};

  /// What values are written in.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;

  /// `<tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>`, each.
  [[nodiscard]] static JsonCall hermes() { return {"<tool_call>", "</tool_call>", "\n"}; }
  /// As hermes; an answer that may be text may also hold calls in ```` ```json ```` blocks, or begin
  /// with a bare call, with white space as the model likes: so does Qwen2.5-Coder, whose template is
  /// that of Qwen2.5.
  [[nodiscard]] static JsonCall qwen_2_5();
  /// `<|python_tag|>{"name": ..., "parameters": {...}}; {...}`, the tag not needed where the answer
  /// begins with a call. `"type": "function"` may precede the name, as the models often have it.
  [[nodiscard]] static JsonCall llama();
  /// `[TOOL_CALLS] [{"name": ..., "arguments": {...}}, {...}]`; a call may have an `"id"`, too.
  [[nodiscard]] static JsonCall mistral();
  /// `{"name": ..., "arguments": {...}}` and nothing else; further calls on further lines.
  [[nodiscard]] static JsonCall bare() { return {"", "", "", "arguments", "\n"}; }
  /// `[{"name": ..., "arguments": {...}}, {...}]` and nothing else.
  [[nodiscard]] static JsonCall bare_list() { return {"", "", "", "arguments", ", ", true}; }

  /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, each.
  [[nodiscard]] static JsonCall exaone() { return {"<tool_call>", "</tool_call>", ""}; }
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
  /// `<|END_ACTION|>`; text is a response in marks of its own.
  [[nodiscard]] static JsonCall command_r7b();
  /// ```` Action:\n```json\n[{"tool_name": "f", "parameters": {...}}]\n``` ````.
  [[nodiscard]] static JsonCall command_r_plus();
  /// ```` ```json\n{"name": ..., "arguments": {...}}\n``` ````, each.
  [[nodiscard]] static JsonCall fence() { return {"```json", "```", "\n"}; }

  [[nodiscard]] std::string_view trigger() const noexcept;
  [[nodiscard]] bool only_at_start() const noexcept { return begin.empty(); }
  [[nodiscard]] const tools::TextFrame& frame() const noexcept { return response; }

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;

  /// The calls of an answer; none where it has no opening delimiter, or does not begin with the
  /// JSON.
  ///
  /// \param tools  those whose names tell a call in `fences` from text
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// The first call's object, its closing delimiter and further calls, behind the opening
  /// delimiter; or behind a brace that an answer begins with.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // Most bytes of white space at a place of a fence: a line end, and an indent of eleven levels.
  static constexpr std::uint32_t fence_whitespace = 23;
  // The ways in which an answer that may be text opens calls without `begin`.
  void append_fences(std::vector<CallOpening>& openings, Grammar& grammar, const ToolSet& tools,
                     const std::vector<std::pair<std::string, NodeId>>& named,
                     const ChoiceOptions& options) const;
  // The fence that is first in a text, and where it is.
  [[nodiscard]] std::optional<std::pair<std::size_t, const tools::CallFence*>> find_fence(
      std::string_view text, const ToolSet& tools) const;
  // What a call of a tool, whose name is given as JSON, begins with in a fence, in each layout.
  [[nodiscard]] std::vector<std::string> beginnings(const tools::CallFence& fence,
                                                    std::string_view name_text) const;
  // The tools' names, each with what follows it in the call's object.
  [[nodiscard]] std::vector<std::pair<std::string, NodeId>> names(
      Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
      const ChoiceOptions& options) const;
  [[nodiscard]] ToolCall parse_call(text::ValueReader& reader) const;
  // What precedes the name in a call's object, and the name's key.
  [[nodiscard]] NodeId before_name(Grammar& grammar, const ChoiceOptions& options) const;
  [[nodiscard]] const std::string& before_last() const;
  // Calls between one pair of delimiters, to the end of the text.
  void parse_all(text::ValueReader& reader, std::vector<ToolCall>& calls) const;
};
static_assert(CallFormat<JsonCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/json_call.ipp>
#endif
