/// \file
/// DelimitedCall: a tool's name and a JSON object of arguments, each behind a delimiter of its own.
#pragma once

#include <cstddef>
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

/// Calls whose names stand outside the JSON: DeepSeek, Kimi K2, Mistral, Functionary and ReAct.
///
/// Text may precede the calls. The delimiters are text to `write` and `parse`; a vocabulary may
/// have them as control tokens or not. White space may stand around the arguments and between
/// calls. A name holds none of the delimiters.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite and for calls more than the format has in an answer;
///                  Error{unsupported_name} for a name that holds a delimiter
/// \par Source      chat templates of DeepSeek-V3, R1 and V3.1, of Devstral Small and of Mistral
///                  Small 3.2; Moonshot, Kimi-K2, docs/tool_call_guidance.md; Yao et al., ReAct,
///                  arXiv:2210.03629, as LangChain writes it
struct DelimitedCall {
  std::string section_begin;           ///< before the first call; may be empty
  std::string begin;                   ///< before a name
  std::string middle;                  ///< between the name and the arguments
  std::string end;                     ///< behind the arguments
  std::optional<std::string> between;  ///< between two calls; nothing: one call an answer
  std::string section_end;             ///< behind the last call
  bool numbered = false;               ///< names are followed by `:N`, N counting the calls
  bool lenient  = false;  ///< the section's delimiters and `end` may be missing, and a call may end
                          ///< a block of reasoning
  std::string id = "";    ///< between the name and `middle` may be this and a name of the call
  std::string foreign =
      "";                   ///< a pattern: what other readers take for a delimiter, in no free text
  bool bare_first = false;  ///< the prompt has the first `begin`: a call begins with its name
  tools::TextFrame response{};  ///< what may stand around text

  /// What values are written in.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;

  /// Calls are of the type `function`, their arguments a block of Markdown.
  [[nodiscard]] static DelimitedCall deepseek_v3();
  [[nodiscard]] static DelimitedCall deepseek_v3_1();
  /// The model counts the calls of a whole conversation: any number is read, and none is kept. It
  /// leaves out delimiters of the section and behind calls, and `</think>` before them.
  [[nodiscard]] static DelimitedCall kimi_k2();
  /// Mistral since 2025: `[TOOL_CALLS]f[ARGS]{...}`, or with `[CALL_ID]` and nine letters or digits
  /// behind the name, which are not kept.
  [[nodiscard]] static DelimitedCall mistral();
  /// `<function=f>{...}</function>`.
  [[nodiscard]] static DelimitedCall functionary_3_1();
  /// `f\n{...}>>>g\n{...}`; text is what follows `all` and a line end.
  [[nodiscard]] static DelimitedCall functionary_3_2();
  /// Where a call is required, a thought before it is ChoiceOptions' `reasoning` of `Thought:` and
  /// a line's end.
  [[nodiscard]] static DelimitedCall react();

  [[nodiscard]] std::string_view trigger() const noexcept;
  [[nodiscard]] static bool only_at_start() noexcept { return false; }
  /// Of what free text holds nothing.
  [[nodiscard]] const std::string& barred() const noexcept { return foreign; }
  [[nodiscard]] const tools::TextFrame& frame() const noexcept { return response; }
  /// The delimiters that end a block of reasoning.
  [[nodiscard]] std::vector<std::string> ends_reasoning() const;

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;

  /// The calls of an answer; none where it has no opening delimiter.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// The calls, behind the delimiter that opens the first or their section.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // A call without its section, and what R1 and its small siblings write for the section's
  // delimiter.
  static constexpr const char* other_deepseek_delimiters =
      "<｜tool(▁call▁begin|▁calls|_calls_begin| calls begin|\\\\_calls\\\\_begin)｜>";

  // What is looked for behind a name.
  [[nodiscard]] std::string_view name_end() const;
  // Where the calls of a text begin; nothing where it makes none.
  [[nodiscard]] std::optional<std::size_t> find_first(std::string_view text,
                                                      const ToolSet& tools) const;
  // The delimiter that `begin` begins with.
  [[nodiscard]] std::string_view call_delimiter() const;

  // The tools' names, with all that follows each up to the end of the arguments.
  [[nodiscard]] std::vector<std::pair<std::string, NodeId>> names(
      Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
      const ChoiceOptions& options) const;

  // Whether the calls end here, and with them their section.
  [[nodiscard]] bool is_over(text::ValueReader& reader) const;

  // A name up to a delimiter: that of a tool as it stands, else without what may stand around it.
  [[nodiscard]] std::string parse_name(text::ValueReader& reader, const ToolSet& tools) const;

  // A call behind what opens it.
  [[nodiscard]] ToolCall parse_call(text::ValueReader& reader, const ToolSet& tools) const;
};
static_assert(CallFormat<DelimitedCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/delimited_call.ipp>
#endif
