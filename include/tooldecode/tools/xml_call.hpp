/// \file
/// XmlCall: calls as elements, an argument each, as Qwen3-Coder and GLM write them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include <tooldecode/tools/value_writer.hpp>

namespace tooldecode {

namespace tools {
enum class PlainForm : std::uint8_t;
class PlainText;
}  // namespace tools

/// A call as an element with one inside for each argument; text may precede the first call. The
/// delimiters are text to `write` and `parse`; a vocabulary may have them as control tokens or not.
///
/// Strings are written as they are, up to the delimiter that closes them; anything else is JSON,
/// and so are the values of a parameter that may be a string or something else than null. Which it
/// is the tool's document says: of tools and keys that are not documented, what is JSON is read as
/// such and the rest is a string.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite and for strings that the format cannot hold;
///                  Error{unsupported_keyword} for parameters that are not listed as properties;
///                  Error{unsupported_name} for a name that holds a delimiter, or white space that
///                  the format does not tell from its own
/// \par Source      chat templates of Qwen3-Coder (and Qwen3.5), GLM-4.5 and GLM-4.6
struct XmlCall {
  std::string begin;         ///< opens a call
  std::string before_name;   ///< may be empty
  std::string after_name;    ///< may be empty
  std::string before_key;    ///< opens an argument
  std::string after_key;     ///< closes its key
  std::string before_value;  ///< may be empty: the key's end opens the value
  std::string after_value;   ///< closes it
  std::string padding;       ///< around a value; not part of it
  std::string after_values;  ///< may be empty
  std::string end;           ///< closes a call
  bool bare = false;         ///< `begin` may be missing, and `end` where it is

  using Json = nlohmann::ordered_json;

  /// What values are written in, unless they are strings.
  static constexpr tools::ValueReader::Language language = tools::ValueReader::Language::json;
  /// Between elements.
  static constexpr std::string_view gap = "\n";

  /// `<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>`; the
  /// model leaves out `<tool_call>` now and then.
  [[nodiscard]] static XmlCall qwen3_coder();
  /// `<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>`.
  [[nodiscard]] static XmlCall glm();

  [[nodiscard]] std::string_view trigger() const noexcept { return begin; }
  [[nodiscard]] static bool only_at_start() noexcept { return false; }

  /// \param tools  says which strings are written with quotes: without it none are
  [[nodiscard]] std::string write(std::span<const ToolCall> calls, const ToolSet& tools = {}) const;

  /// The calls of an answer; none where it has no opening delimiter.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// An argument as it stands in a call, see CallFormat.
  [[nodiscard]] std::pair<std::string, Json> read_argument(const Tool& tool, std::size_t given,
                                                           std::string_view before,
                                                           std::string_view text) const;

  /// The first call, its closing delimiter and further calls, behind the delimiter that opens the
  /// first.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // What closes the arguments.
  [[nodiscard]] const std::string& after_arguments() const {
    return after_values.empty() ? end : after_values;
  }
  // What may stand between elements.
  static NodeId gap_in(Grammar& grammar, const ChoiceOptions& options);
  // The tools' names, each with its arguments.
  [[nodiscard]] std::vector<std::pair<std::string, NodeId>> names(
      Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
      const ChoiceOptions& options) const;
  [[nodiscard]] std::vector<std::string_view> delimiters() const;

  [[nodiscard]] static std::string with_gap(const std::string& delimiter);
  static const Tool* find(const ToolSet& tools, std::string_view name);
  // Nothing for a tool that is not documented, or not as Reader takes it.
  static std::optional<tools::PlainForm> form_of(const Tool* tool, const std::string& key);

  void append_value(std::string& text, const Json& value,
                    std::optional<tools::PlainForm> form) const;

  // A value and its closing delimiter.
  [[nodiscard]] Json value(tools::ValueReader& reader, std::optional<tools::PlainForm> form) const;
  [[nodiscard]] Json json(tools::ValueReader& reader) const;
  [[nodiscard]] Json close(tools::ValueReader& reader, Json result) const;

  NodeId arguments(Grammar& grammar, tools::PlainText& plain, const Tool& tool, NodeId between,
                   const ChoiceOptions& options) const;
};
static_assert(CallFormat<XmlCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/xml_call.ipp>
#endif
