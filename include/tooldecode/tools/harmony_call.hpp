/// \file
/// HarmonyCall: calls as messages to functions, as gpt-oss writes them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>`.
///
/// An answer is messages, one after the other, each with a header: the channel (analysis,
/// commentary or final), who it is for, what it is written in. The first may lack its header, which
/// is then the prompt's. A message to a function is a call, whatever its channel, with ` to=`
/// behind the role or behind the channel; messages to nobody are text. Messages to others
/// (`python`, `browser.search`) are no calls to `parse`, and no answer to the grammar. Behind a
/// call only calls follow. The delimiters are text to `write` and `parse`; a vocabulary may have
/// them as control tokens or not.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite; Error{unsupported_name} for a name with white space or
///                  `<|`
/// \par Source      OpenAI, harmony response format
struct HarmonyCall {
  /// What values are written in.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;

  /// The analysis as a block that precedes an answer.
  [[nodiscard]] static tools::ReasoningDelimiters analysis();

  [[nodiscard]] static std::string_view trigger() noexcept;
  [[nodiscard]] static bool only_at_start() noexcept { return false; }
  /// What begins and ends messages, as far as a block of reasoning ends with another delimiter.
  [[nodiscard]] static std::vector<std::string> never_in_text();

  [[nodiscard]] static std::string write(std::span<const ToolCall> calls);

  /// The calls of an answer; none where no message is to a function.
  [[nodiscard]] static std::vector<ToolCall> parse(std::string_view text, const ToolSet& /*tools*/);

  /// The calls, with the first one's header: there is no delimiter that every call begins with.
  [[nodiscard]] static std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                         std::span<const std::size_t> chosen,
                                                         const ChoiceOptions& options);

  /// Messages to nobody.
  [[nodiscard]] static AnswerTexts texts(Grammar& grammar);

 private:
  static constexpr const char* delimiters[] = {"<|start|>",   "<|channel|>", "<|constrain|>",
                                               "<|message|>", "<|end|>",     "<|call|>",
                                               "<|return|>"};

  static std::vector<std::string> text_of_delimiters();
  static bool is_at_delimiter(const text::ValueReader& reader);

  static void refuse(const Tool& tool);

  static NodeId optional_space(Grammar& grammar) { return grammar.optional(grammar.literal(" ")); }
  static NodeId any_channel(Grammar& grammar);
  // What a header ends with: perhaps a type, then the message.
  static NodeId type_of(Grammar& grammar, NodeId type);
  static NodeId type_of_json(Grammar& grammar) { return type_of(grammar, grammar.literal("json")); }
  static NodeId any_type(Grammar& grammar);

  // Reads up to a message; gives who it is for.
  static std::optional<std::string_view> parse_header(text::ValueReader& reader, bool is_first);
  static std::string_view word(text::ValueReader& reader);
};
static_assert(CallFormat<HarmonyCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/harmony_call.ipp>
#endif
