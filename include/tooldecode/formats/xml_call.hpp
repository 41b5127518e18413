/// \file
/// XmlCall: calls as elements, one per argument, as Qwen3-Coder, DeepSeek and others write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/id.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

namespace schema {
struct Form;
struct ObjectForm;
class StringSets;
}  // namespace schema
namespace formats {
enum class PlainForm : std::uint8_t;
class ElementTypes;
class ListedArguments;
}  // namespace formats

namespace detail {
/// Builds the values of an argument from a form.
using MakeValue = std::function<NodeId(formats::PlainForm form, const std::string& key,
                                       core::Id<schema::Form> id)>;
}  // namespace detail

/// A call as an element with one inner element for each argument.
///
/// Text may precede the first call. `write` and `parse` treat delimiters as text; a vocabulary may
/// have them as control tokens.
///
/// With a style, values show their own type, or the document gives it, see ElementText; such a
/// document is enforced for tools that are not strict too, where it can be. Without a style, strings
/// are written as they are, up to the closing delimiter, and other values are JSON. A parameter that
/// admits strings and other values than null is written as JSON throughout. The tool's document
/// decides this. For tools and keys without documentation, text that is JSON is read as JSON and
/// other text as a string.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite and for strings that the format cannot hold;
///                  Error{unsupported_keyword} for keys that are not listed where some have strings
///                  without quotes and others do not; Error{unsupported_name} for a name that holds
///                  a delimiter, or white space that the format cannot tell from its own
/// \par Source      chat templates of Qwen3-Coder (and Qwen3.5, MiMo, Nemotron 3 Nano), GLM-4.5 to
///                  4.7, Seed-OSS, MiniMax M2, MiniCPM5, Kimi K3, Gemma 4; Google's page on the
///                  format of FunctionGemma; DeepSeek-V3.2 and V4,
///                  encoding; XGrammar 0.2, structural tags of Cohere's models and DeepSeek-V4.1;
///                  SGLang 0.5.23, detectors of dots, Step 3, K2 Horizon, IQuest Q1, GigaChat 3.5,
///                  Hunyuan 3 and 4, MiniMax M3; vLLM 0.33, parsers of the last three
struct XmlCall {
  std::string begin;               ///< opens a call
  std::string before_name;         ///< may be empty
  std::string after_name;          ///< may be empty
  std::string before_key;          ///< opens an argument
  std::string after_key;           ///< closes the key
  std::string before_value;        ///< may be empty: then the end of the key opens the value
  std::string after_value;         ///< closes the argument
  std::string padding;             ///< around a value; not part of it
  std::string after_values;        ///< may be empty
  std::string end;                 ///< closes a call
  bool bare            = false;    ///< `begin` may be missing, and then `end` too
  std::string gap      = "\n";     ///< between elements
  std::string call_gap = "\n";     ///< between calls, and between them and the section's
                                   ///< delimiters
  std::string section_begin{};     ///< before the first call; may be empty
  std::string section_end{};       ///< after the last call
  std::string number_end{};        ///< closes the number of a call; if empty, calls have no
                                   ///< numbers
  bool number_first = false;       ///< the number follows `begin`; otherwise it follows
                                   ///< `after_name`
  std::uint32_t first_number = 0;  ///< the first call's number; `parse` accepts any and drops
                                   ///< it
  bool ends_thought = false;       ///< calls may end a reasoning block
  std::optional<formats::ElementStyle> style{};  ///< for values that show their own type
  formats::TextFrame response{};                 ///< what may surround text

  using Json = JsonValue;

  /// The language of values that are not strings.
  static constexpr text::ValueReader::Language language = text::ValueReader::Language::json;
  static constexpr bool shares_parts                    = true;

  /// `<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>`; the
  /// model sometimes omits `<tool_call>`.
  [[nodiscard]] static XmlCall qwen3_coder();
  /// `<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>`.
  [[nodiscard]] static XmlCall glm();
  /// As `glm`, without line ends.
  [[nodiscard]] static XmlCall glm_4_7();
  /// As `glm_4_7`, with `iquest_tool_call` for `tool_call`.
  [[nodiscard]] static XmlCall iquest_q1();
  /// `<ifm|tool_calls>\n<ifm|tool_call>f\n<ifm|arg_key>a</ifm|arg_key>\n<ifm|arg_value>1` and so on.
  [[nodiscard]] static XmlCall k2_horizon();
  /// `<tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n` and so
  /// on.
  ///
  /// \param suffix  what a checkpoint adds to its tokens, such as `:opensource`
  [[nodiscard]] static XmlCall hunyuan_3(std::string_view suffix = {});
  /// As `hunyuan_3`, without line ends and without `<tool_sep>`.
  [[nodiscard]] static XmlCall hunyuan_4(std::string_view suffix = {});
  /// As `qwen3_coder`, without line ends.
  [[nodiscard]] static XmlCall mimo();
  /// `<seed:tool_call>\n<function=f>\n<parameter=a>1</parameter>\n</function>\n</seed:tool_call>`.
  [[nodiscard]] static XmlCall seed_oss();
  /// `<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>\n` and so
  /// on.
  [[nodiscard]] static XmlCall minimax_m2();
  /// `]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">]<]minimax[>[<a>1]<]minimax[>[</a>` and
  /// so on; lists and objects are elements.
  [[nodiscard]] static XmlCall minimax_m3();
  /// As `minimax_m2`, with `dots_function_call` for `minimax:tool_call`.
  [[nodiscard]] static XmlCall dots();
  /// `<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f">\n` and
  /// so on.
  [[nodiscard]] static XmlCall step_3();
  /// `<function name="f"><param name="a">1</param></function>`.
  [[nodiscard]] static XmlCall minicpm5();
  /// `<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a" string="false">1`
  /// and so on.
  [[nodiscard]] static XmlCall deepseek_v3_2();
  /// As `deepseek_v3_2`, with `tool_calls` for `function_calls`; calls may end a reasoning block.
  [[nodiscard]] static XmlCall deepseek_v4();
  /// As `deepseek_v4`, with ` calls`, ` invoke` and ` parameter`.
  [[nodiscard]] static XmlCall deepseek_v4_1();
  /// As `deepseek_v4`, with `GCML` for `DSML`; calls do not end a reasoning block.
  [[nodiscard]] static XmlCall gigachat_3_5();
  /// `<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="a"
  /// type="number"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|>` and so on; text is a
  /// response between its own delimiters.
  [[nodiscard]] static XmlCall kimi_k3();
  /// `<|tool_call>call:f{a:1,b:<|"|>x<|"|>}<tool_call|>`.
  [[nodiscard]] static XmlCall gemma_4();
  /// `<start_function_call>call:f{a:1,b:<escape>x<escape>}<end_function_call>`.
  [[nodiscard]] static XmlCall function_gemma();
  /// `<cofl:tool_calls><cofl:tool_call id="0" name="f"><cofl:value name="a" type="json">1</cofl:value>`
  /// and so on.
  [[nodiscard]] static XmlCall cohere();

  [[nodiscard]] std::string_view trigger() const noexcept;
  [[nodiscard]] static bool only_at_start() noexcept { return false; }
  /// The delimiters that end a reasoning block.
  [[nodiscard]] std::vector<std::string> ends_reasoning() const;
  [[nodiscard]] const formats::TextFrame& frame() const noexcept { return response; }

  /// \param tools  decide which strings have quotes; without them no string has
  [[nodiscard]] std::string write(std::span<const ToolCall> calls, const ToolSet& tools = {}) const;

  /// The calls of an answer; none without an opening delimiter.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const;

  /// One argument of a call, see CallFormat.
  [[nodiscard]] std::pair<std::string, JsonValue> read_argument(const Tool& tool, std::size_t given,
                                                                std::string_view before,
                                                                std::string_view text) const;

  /// The key of an argument, from the text before its value.
  [[nodiscard]] std::string read_key(const Tool& tool, std::size_t given,
                                     std::string_view before) const;

  /// The first call, its closing delimiter and further calls, after the delimiter that opens the
  /// first.
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const;

 private:
  // Texts that readers take for the end of a value, a call or all calls. No value holds one.
  [[nodiscard]] std::vector<std::string> ends_of_values() const;
  // The style, with the texts of ends_of_values excluded from its values.
  [[nodiscard]] formats::ElementStyle whole_style() const;
  // A format with the delimiters and values of an element style.
  static XmlCall of_style(std::string_view name);
  // True where the name follows directly after what opens a call, as in an attribute.
  [[nodiscard]] bool is_exact_name() const { return begin.ends_with('"') || number_first; }
  [[nodiscard]] std::optional<std::string> why_not_key(const std::string& key) const;
  [[nodiscard]] const std::string& after_arguments() const;
  // What may replace white space that the format writes.
  static NodeId gap_in(Grammar& grammar, std::string_view written, const ChoiceOptions& options);
  [[nodiscard]] std::vector<std::pair<std::string, NodeId>> names(
      Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
      const ChoiceOptions& options) const;
  [[nodiscard]] std::vector<std::string_view> delimiters() const;

  [[nodiscard]] std::string with_gap(const std::string& delimiter) const;
  // The text of a call's number; empty where calls have none.
  [[nodiscard]] std::string written_number(std::size_t call) const;
  void skip_number(text::ValueReader& reader) const;
  [[nodiscard]] NodeId number(Grammar& grammar) const;
  // Reads a key up to its end; a documented key is read literally.
  [[nodiscard]] std::string key(text::ValueReader& reader, const Tool* tool) const;
  // Reads the value of a key, and what closes its element.
  [[nodiscard]] Json styled_value(text::ValueReader& reader, const std::string& key,
                                  const formats::ElementTypes& types) const;
  static const Tool* find(const ToolSet& tools, std::string_view name);
  // Empty for an undocumented tool, or for parameters that schema::Reader refuses.
  static std::optional<formats::PlainForm> form_of(const Tool* tool, const std::string& key);

  void append_value(std::string& text, const Json& value,
                    std::optional<formats::PlainForm> form) const;

  // Reads a value and its closing delimiter.
  [[nodiscard]] Json value(text::ValueReader& reader, std::optional<formats::PlainForm> form) const;
  [[nodiscard]] Json close(text::ValueReader& reader, Json result) const;

  NodeId arguments(Grammar& grammar, const Tool& tool, NodeId between,
                   const ChoiceOptions& options) const;
  // The arguments that form one of the objects; leading keys come first.
  [[nodiscard]] NodeId argument_set(Grammar& grammar, const Tool& tool,
                                    const formats::ListedArguments& listed,
                                    const schema::ObjectForm& object, schema::StringSets& texts,
                                    const detail::MakeValue& value, NodeId between,
                                    const ChoiceOptions& options) const;
};
static_assert(CallFormat<XmlCall>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/xml_call.ipp>
#include <tooldecode/formats/xml_call_families.ipp>
#endif
