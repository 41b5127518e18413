/// \file
/// HarmonyCall: calls as messages to functions, as gpt-oss writes them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>`.
///
/// An answer is a sequence of messages. Each has a header: channel (analysis, commentary or final),
/// recipient, content type. The first header may be part of the prompt. A message to a function is
/// a call on any channel, with ` to=` after the role or after the channel. A message without a
/// recipient is text. Messages to other recipients (`python`, `browser.search`) are no calls to
/// `parse`, and the grammar does not allow them. After a call only calls follow. `write` and
/// `parse` treat delimiters as text; a vocabulary may have them as control tokens.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite; Error{unsupported_name} for a name with white space or
///                  `<|`
/// \par Source      OpenAI, harmony response format
struct HarmonyCall {
  /// The language of values.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;
  static constexpr bool shares_parts                    = true;

  /// Delimiters for the analysis as a reasoning block before an answer.
  [[nodiscard]] static formats::ReasoningDelimiters analysis();

  [[nodiscard]] static std::string_view trigger() noexcept;
  [[nodiscard]] static bool only_at_start() noexcept { return false; }
  /// Delimiters of messages that neither text nor reasoning holds.
  [[nodiscard]] static std::vector<std::string> never_in_text();

  [[nodiscard]] static std::string write(std::span<const ToolCall> calls);

  /// The calls of an answer; none without a message to a function.
  [[nodiscard]] static std::vector<ToolCall> parse(std::string_view text, const ToolSet& /*tools*/);

  /// The calls, with the first one's header: no delimiter begins every call.
  [[nodiscard]] static std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                         std::span<const std::size_t> chosen,
                                                         const ChoiceOptions& options);

  /// Messages without a recipient.
  ///
  /// \param beside  what else text does not hold, and what an answer without a header does not begin
  ///                with
  [[nodiscard]] static AnswerTexts texts(Grammar& grammar, formats::FreeText beside = {});
  /// All delimiters.
  [[nodiscard]] static std::vector<std::string> text_of_delimiters();
};
static_assert(CallFormat<HarmonyCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/harmony_call.ipp>
#endif
