/// \file
/// PythonCall: calls as Python writes them, `[f(a=1, b='x'), g()]`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// A list of calls with keyword arguments, as in API-Bank, BFCL and Llama 3.2.
///
/// Without delimiters, an answer is a call list from its first byte that is not white space, or it
/// makes no call. With delimiters, text may precede the calls, and a vocabulary may have the
/// delimiters as control tokens. `parse` gives positional arguments the documented names in order.
/// A documented name may hold characters that end other names: `GET /users/{id}(date
/// from='today')`.
///
/// \par Complexity  write O(length of the text); parse O(tools) more per call
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite; Error{unsupported_name} for names that `parse` would not
///                  read back
/// \par Source      Li et al., API-Bank, arXiv:2304.08244; Patil et al., Gorilla, arXiv:2305.15334;
///                  chat templates of LFM2 and LFM2.5, Llama 4 and Olmo 3
struct PythonCall {
  std::string begin{};            ///< opens the calls; if empty, the answer begins with the list
  std::string end{};              ///< closes the calls
  std::string open      = "[";    ///< opens the list; may be empty
  std::string close     = "]";    ///< closes the list; if empty, `end` does
  std::string separator = ", ";   ///< between calls
  bool bare_at_start    = false;  ///< a list at the start of an answer needs no delimiters

  /// The language of values.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::python;
  static constexpr bool shares_parts                    = true;

  /// `<|tool_call_start|>[f(a=1), g()]<|tool_call_end|>`.
  [[nodiscard]] static PythonCall lfm2() { return {"<|tool_call_start|>", "<|tool_call_end|>"}; }
  /// `<|python_start|>[f(a=1), g()]<|python_end|>`, or only the list at the start of an answer.
  [[nodiscard]] static PythonCall llama_4();
  /// `<function_calls>f(a=1)\ng()</function_calls>`.
  [[nodiscard]] static PythonCall olmo_3();

  [[nodiscard]] std::string_view trigger() const noexcept { return begin.empty() ? open : begin; }
  [[nodiscard]] bool only_at_start() const noexcept { return begin.empty(); }

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;

  /// The calls of an answer; without delimiters, none where it does not begin with a call list.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// One argument of a call, see CallFormat.
  [[nodiscard]] static std::pair<std::string, JsonValue> read_argument(const Tool& tool,
                                                                       std::size_t given,
                                                                       std::string_view before,
                                                                       std::string_view text);

  /// `f(a=1), g()]`, after the opening bracket.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // The parser skips space around documented names, so names must differ without it.
  static std::string_view without_space(std::string_view name);
  // Why the format cannot carry a name: it holds the delimiter after it, or begins like the end of
  // a list.
  static std::optional<std::string> why_not(const std::string& name, std::string_view behind,
                                            char closing);
  [[nodiscard]] const std::string& closing() const { return close.empty() ? end : close; }
  void check_name(const Tool& tool, const ToolSet& tools) const;
  static void check_arguments(const Tool& tool);

  // Whether no call of the mask has an argument without a documented name.
  static bool lists_all_arguments(const Tool& tool);
  static ToolCall parse_call(text::ValueReader& reader, const ToolSet& tools);
  // The end of a documented name and the delimiter after it; 0 where they do not come next. The
  // caller has skipped space before the name.
  static std::size_t end_of(std::string_view rest, std::string_view name, char delimiter);
  // `name=` at the cursor; empty for a positional value.
  static std::optional<std::string> keyword(text::ValueReader& reader,
                                            std::span<const std::string> names);
  static std::string documented_name(const text::ValueReader& reader, const Tool* tool,
                                     std::size_t position);
};
static_assert(CallFormat<PythonCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/python_call.ipp>
#endif
