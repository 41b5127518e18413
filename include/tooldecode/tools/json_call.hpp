/// \file
/// JsonCall: calls as JSON objects between two delimiters, as Hermes and Qwen write them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>

namespace tooldecode {

/// `{"name": "f", "arguments": {...}}`, with delimiters around each call or around all of them, or
/// with none; text may precede the first delimiter, but not calls without delimiters.
///
/// The delimiters are text to `write` and `parse`; a vocabulary may have them as control tokens or
/// not.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite
/// \par Source      NousResearch, Hermes function calling; chat templates of Qwen2.5, Llama 3.1,
///                  Mistral 7B v0.3 and Nemo; Salesforce, xLAM
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

  /// What values are written in.
  static constexpr tools::ValueReader::Language language = tools::ValueReader::Language::json;

  /// `<tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>`, each.
  [[nodiscard]] static JsonCall hermes() { return {"<tool_call>", "</tool_call>", "\n"}; }
  /// `<|python_tag|>{"name": ..., "parameters": {...}}; {...}`, the tag not needed where the answer
  /// begins with a call.
  [[nodiscard]] static JsonCall llama();
  /// `[TOOL_CALLS] [{"name": ..., "arguments": {...}}, {...}]`; a call may have an `"id"`, too.
  [[nodiscard]] static JsonCall mistral();
  /// `{"name": ..., "arguments": {...}}` and nothing else; further calls on further lines.
  [[nodiscard]] static JsonCall bare() { return {"", "", "", "arguments", "\n"}; }
  /// `[{"name": ..., "arguments": {...}}, {...}]` and nothing else.
  [[nodiscard]] static JsonCall bare_list() { return {"", "", "", "arguments", ", ", true}; }

  [[nodiscard]] std::string_view trigger() const noexcept;
  [[nodiscard]] bool only_at_start() const noexcept { return begin.empty(); }

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;

  /// The calls of an answer; none where it has no opening delimiter, or does not begin with the
  /// JSON.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& /*tools*/) const;

  /// The first call's object, its closing delimiter and further calls, behind the opening
  /// delimiter; or behind a brace that an answer begins with.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // The tools' names, each with what follows it in the call's object.
  [[nodiscard]] std::vector<std::pair<std::string, NodeId>> names(
      Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
      const ChoiceOptions& options) const;
  [[nodiscard]] ToolCall parse_call(tools::ValueReader& reader) const;
  // Calls between one pair of delimiters, to the end of the text.
  void parse_all(tools::ValueReader& reader, std::vector<ToolCall>& calls) const;
};
static_assert(CallFormat<JsonCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/json_call.ipp>
#endif
