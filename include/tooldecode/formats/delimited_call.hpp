/// \file
/// DelimitedCall: a tool's name and a JSON object of arguments, each after its own delimiter.
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

/// Calls with the name outside the JSON: DeepSeek, Kimi K2, Mistral, Functionary and ReAct.
///
/// Text may precede the calls. `write` and `parse` treat delimiters as text; a vocabulary may have
/// them as control tokens. White space may surround the arguments and separate calls. A name holds
/// none of the delimiters.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite and for more calls than the format allows in an answer;
///                  Error{unsupported_name} for a name that holds a delimiter
/// \par Source      chat templates of DeepSeek-V3, R1 and V3.1, of Devstral Small and of Mistral
///                  Small 3.2; Moonshot, Kimi-K2, docs/tool_call_guidance.md; vLLM 0.33, parser
///                  of PLaMo 3; Yao et al., ReAct, arXiv:2210.03629, as LangChain writes it
struct DelimitedCall {
  std::string section_begin;           ///< before the first call; may be empty
  std::string begin;                   ///< before a name
  std::string middle;                  ///< between the name and the arguments
  std::string end;                     ///< after the arguments
  std::optional<std::string> between;  ///< between two calls; without it, one call per answer
  std::string section_end;             ///< after the last call
  bool numbered = false;               ///< `:N` follows each name, where N counts the calls
  bool lenient  = false;  ///< `end` and the section's delimiters may be missing, and a call may end
                          ///< a reasoning block
  std::string id      = "";  ///< this and a call's id may stand between the name and `middle`
  std::string foreign = "";  ///< a pattern that other readers take for a delimiter; free text holds
                             ///< no match
  bool bare_first = false;   ///< the prompt ends with the first `begin`, so a call begins with its
                             ///< name
  formats::TextFrame response{};  ///< what may surround text

  /// The language of values.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;
  static constexpr bool shares_parts                    = true;

  /// Calls have the type `function`; their arguments are a Markdown code block.
  [[nodiscard]] static DelimitedCall deepseek_v3();
  [[nodiscard]] static DelimitedCall deepseek_v3_1();
  /// The model numbers the calls of a whole conversation: `parse` accepts any number and drops it.
  /// The model omits delimiters of the section and after calls, and `</think>` before them.
  [[nodiscard]] static DelimitedCall kimi_k2();
  /// Mistral since 2025: `[TOOL_CALLS]f[ARGS]{...}`, or with `[CALL_ID]` and nine letters or digits
  /// after the name; `parse` drops them.
  [[nodiscard]] static DelimitedCall mistral();
  /// `<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|>` and so on, with
  /// `begin_tool_name` and `begin_tool_arguments`.
  [[nodiscard]] static DelimitedCall plamo_3();
  /// `<function=f>{...}</function>`.
  [[nodiscard]] static DelimitedCall functionary_3_1();
  /// `f\n{...}>>>g\n{...}`; text follows `all` and a line end.
  [[nodiscard]] static DelimitedCall functionary_3_2();
  /// Where a call is required, set ChoiceOptions' `reasoning` to `Thought:` and a line end to allow
  /// a thought before it.
  [[nodiscard]] static DelimitedCall react();

  [[nodiscard]] std::string_view trigger() const noexcept;
  [[nodiscard]] static bool only_at_start() noexcept { return false; }
  /// A pattern that free text does not match.
  [[nodiscard]] const std::string& barred() const noexcept { return foreign; }
  [[nodiscard]] const formats::TextFrame& frame() const noexcept { return response; }
  /// The delimiters that end a reasoning block.
  [[nodiscard]] std::vector<std::string> ends_reasoning() const;

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;

  /// The calls of an answer; none without an opening delimiter.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// The calls, after the delimiter that opens the first one or their section.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // A call without its section, and the section delimiters that R1 and its small variants write
  // instead.
  static constexpr const char* other_deepseek_delimiters =
      "<｜tool(▁call▁begin|▁calls|_calls_begin| calls begin|\\\\_calls\\\\_begin)｜>";

  // The text that ends a name.
  [[nodiscard]] std::string_view name_end() const;
  // Where the calls of a text begin; empty where it has none.
  [[nodiscard]] std::optional<std::size_t> find_first(std::string_view text,
                                                      const ToolSet& tools) const;
  [[nodiscard]] std::string_view call_delimiter() const;

  // The tools' names, each with what follows it up to the end of the arguments.
  [[nodiscard]] std::vector<std::pair<std::string, NodeId>> names(
      Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
      const ChoiceOptions& options) const;

  // True where the calls and their section end.
  [[nodiscard]] bool is_over(text::ValueReader& reader) const;

  // Reads a name up to a delimiter. A tool's name is taken literally; otherwise outer white space
  // is removed.
  [[nodiscard]] std::string parse_name(text::ValueReader& reader, const ToolSet& tools) const;

  // Reads a call after its opening delimiter.
  [[nodiscard]] ToolCall parse_call(text::ValueReader& reader, const ToolSet& tools) const;
};
static_assert(CallFormat<DelimitedCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/delimited_call.ipp>
#endif
