/// \file
/// PositionalCall: a call without keys inside text, as ToolkenGPT and ToolDec write it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

namespace schema {
class GrammarBuilder;
class Reader;
class Spellings;
}  // namespace schema

/// One call at the end of an answer's text; its arguments are JSON values in the documented order.
///
/// Only the last arguments can be left out, and only documented ones can be given. The text
/// continues in another answer, after the call's result.
///
/// \par Complexity  write O(length of the text); parse O(length x tools)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for calls
///                  that the format cannot write; Error{invalid_option} for leading keys out of
///                  order; Error{unsatisfiable_schema} where no conforming call leaves out only the
///                  last arguments; Error{unsupported_name} for a name that holds a delimiter
/// \par Source      Hao et al., ToolkenGPT, arXiv:2305.11554; Zhang et al., ToolDec,
///                  arXiv:2310.07075
struct PositionalCall {
  std::string begin;         ///< before the name
  std::string middle;        ///< between the name and the arguments
  std::string end;           ///< after the arguments
  bool is_delimiter = true;  ///< `begin` alone opens a call; otherwise a name must follow

  /// The language of values.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;
  static constexpr bool shares_parts                    = true;

  /// `<square>(16)=`.
  [[nodiscard]] static PositionalCall toolken() { return {"<", ">(", ")=", false}; }
  /// `<T>square(5)`.
  [[nodiscard]] static PositionalCall tool_dec() { return {"<T>", "(", ")"}; }

  [[nodiscard]] std::string_view trigger() const noexcept { return begin; }
  [[nodiscard]] static bool only_at_start() noexcept { return false; }
  /// \param tools  have the order of the arguments; without them it stays as given
  [[nodiscard]] std::string write(std::span<const ToolCall> calls, const ToolSet& tools = {}) const;

  /// The call of an answer; none where no tool's name stands between the delimiters.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// One argument of a call, see CallFormat.
  [[nodiscard]] static std::pair<std::string, JsonValue> read_argument(const Tool& tool,
                                                                       std::size_t given,
                                                                       std::string_view before,
                                                                       std::string_view text);

  /// `square>(16)=`, after the opening delimiter.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  static NodeId arguments(Grammar& grammar, const schema::Spellings& text, const Tool& tool,
                          const ChoiceOptions& options, schema::Reader& reader,
                          schema::GrammarBuilder& values);
};
static_assert(CallFormat<PositionalCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/positional_call.ipp>
#endif
