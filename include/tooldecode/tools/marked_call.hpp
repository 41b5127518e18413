/// \file
/// MarkedCall: a tool's name and a JSON object of arguments, each behind a mark of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/json_schema.hpp>
#include <tooldecode/grammar/schema_text.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/code_point.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/mark.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/tools/value_writer.hpp>

namespace tooldecode {

/// Calls whose names stand outside the JSON: DeepSeek, Kimi K2, gpt-oss, Mistral and ReAct.
///
/// Text may precede the calls. The marks are text to `write` and `parse`; a vocabulary may have
/// them as control tokens or not. White space may stand around the arguments and between calls.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Threads     a value
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite and for calls more than the format has in an answer
/// \par Source      chat templates of DeepSeek-V3, R1 and V3.1 and of Devstral Small; Moonshot,
///                  Kimi-K2, docs/tool_call_guidance.md; OpenAI, harmony response format; Yao et
///                  al., ReAct, arXiv:2210.03629, as LangChain writes it
struct MarkedCall {
  std::string section_begin;           ///< before the first call; may be empty
  std::string begin;                   ///< before a name
  std::string middle;                  ///< between the name and the arguments
  std::string end;                     ///< behind the arguments
  std::optional<std::string> between;  ///< between two calls; nothing: one call an answer
  std::string section_end;             ///< behind the last call
  bool numbered  = false;              ///< names are followed by `:N`, N counting the calls
  bool ends_text = false;  ///< the last call's `end` may be an end token, and missing in the text
  std::vector<std::string> text_marks = {};  ///< control tokens that the text before may hold

  /// What values are written in.
  static constexpr ValueReader::Language language = ValueReader::Language::json;

  /// Calls are of the type `function`, their arguments a block of Markdown.
  [[nodiscard]] static MarkedCall deepseek_v3() {
    return {"<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
            "\n```json\n",
            "\n```<｜tool▁call▁end｜>",
            "\n",
            "<｜tool▁calls▁end｜>"};
  }
  [[nodiscard]] static MarkedCall deepseek_v3_1() {
    return {"<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "",
            "<｜tool▁calls▁end｜>"};
  }
  /// The model counts the calls of a whole conversation: any number is read, and none is kept.
  [[nodiscard]] static MarkedCall kimi_k2() {
    return {"<|tool_calls_section_begin|>",
            "<|tool_call_begin|>functions.",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "",
            "<|tool_calls_section_end|>",
            true};
  }
  /// Messages of the commentary channel; other channels are free text.
  [[nodiscard]] static MarkedCall harmony() {
    return {"",
            "<|channel|>commentary to=functions.",
            " <|constrain|>json<|message|>",
            "<|call|>",
            "<|start|>assistant",
            "",
            false,
            true,
            {"<|channel|>", "<|message|>", "<|end|>", "<|start|>"}};
  }
  /// gpt-oss's analysis, as a block that precedes an answer.
  [[nodiscard]] static ReasoningMarks harmony_analysis() {
    return {"<|channel|>analysis<|message|>", "<|end|><|start|>assistant"};
  }
  /// Mistral since 2025: `[TOOL_CALLS]f[ARGS]{...}`.
  [[nodiscard]] static MarkedCall mistral() { return {"", "[TOOL_CALLS]", "[ARGS]", "", "", ""}; }
  /// Where a call is required, a thought before it is ChoiceOptions' `reasoning` of `Thought:` and
  /// a line's end.
  [[nodiscard]] static MarkedCall react() {
    return {"", "Action: ", "\nAction Input: ", "", std::nullopt, ""};
  }

  [[nodiscard]] std::string_view trigger() const noexcept {
    return section_begin.empty() ? begin : section_begin;
  }
  [[nodiscard]] static bool only_at_start() noexcept { return false; }

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const {
    if (calls.empty()) return {};
    if (!between && calls.size() > 1) {
      throw Error(Errc::malformed_call, calls[1].name, "the format has one call in an answer");
    }
    std::string text = section_begin;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (i > 0) text += *between;
      text += begin + calls[i].name;
      if (numbered) text += ':' + std::to_string(i);
      text += middle + write_json(calls[i].arguments) + end;
    }
    return text + section_end;
  }

  /// The calls of an answer; none where it has no opening mark.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& /*tools*/) const {
    std::vector<ToolCall> calls;
    const std::size_t first = text.find(trigger());
    if (first == std::string_view::npos) return calls;
    ValueReader reader(text, ValueReader::Language::json, Errc::malformed_call);
    reader.allow_repeated_keys();
    reader.skip(first);
    reader.expect(section_begin);
    do {
      reader.skip_space();
      if (!calls.empty()) reader.expect(detail::trimmed(*between));
      reader.skip_space();
      calls.push_back(parse_call(reader));
      reader.skip_space();
    } while (between && (section_end.empty() ? !reader.at_end() : !reader.accept(section_end)));
    reader.skip_space();
    if (!reader.at_end()) reader.fail("expected the end of the text after the calls");
    return calls;
  }

  /// The calls, where the mark that opens the first has been read.
  [[nodiscard]] NodeId calls_after_trigger(Grammar& grammar, const ToolSet& tools,
                                           std::span<const std::size_t> chosen,
                                           const ChoiceOptions& options) const {
    const SchemaOptions written{ValueSyntax::json, options.documented_order, options.whitespace,
                                options.leading_keys};
    const NodeId space = SchemaText(grammar, ValueSyntax::json, options.whitespace).space();
    const auto middles = numbered ? std::vector<std::string>{":"} : detail::mark_spellings(middle);
    std::vector<std::pair<std::string, NodeId>> names;
    for (const std::size_t i : chosen) {
      const Tool& tool     = tools[i];
      const auto arguments = [&](Grammar& part) {
        SchemaCompiler compiler(part, tool.parameters, written);
        const NodeId opening =
            numbered ? part.sequence({number(part), detail::mark(part, middle)}) : part.empty();
        return part.sequence({opening, compiler.whitespace(),
                              compiler.value(tool.parameters, tool.parameters_pointer),
                              compiler.whitespace()});
      };
      const NodeId after_name = grammar.part(static_cast<std::uint32_t>(i), arguments);
      for (const std::string& after : middles) names.emplace_back(tool.name + after, after_name);
    }
    const NodeId name  = grammar.trie(names);
    const NodeId mark  = detail::mark(grammar, begin);
    const NodeId first = section_begin.empty() ? grammar.empty() : grammar.sequence({space, mark});
    if (options.open_ended) {
      return grammar.sequence({first, name, grammar.lexeme(detail::any_text())});
    }
    const bool exact   = options.whitespace == 0;
    const NodeId close = detail::mark(grammar, end);
    const NodeId last  = grammar.sequence({ends_text ? grammar.optional(close) : close, space,
                                           detail::mark(grammar, section_end),
                                          section_end.empty() ? grammar.empty() : space});
    if (!between || !options.parallel) return grammar.sequence({first, name, last});
    const NodeId next =
        exact ? grammar.sequence({close, detail::mark(grammar, *between), mark})
              : grammar.sequence(
                    {close, space, detail::mark(grammar, detail::trimmed(*between)), space, mark});
    return grammar.sequence({first, grammar.repeat(name, {1, Occurrences::unbounded}, next), last});
  }

 private:
  // One to nine digits.
  static NodeId number(Grammar& grammar) {
    std::vector<Dfa::Row> rows(2);
    for (unsigned b = '0'; b <= '9'; ++b) rows[0].next[b] = rows[1].next[b] = 1;
    rows[0].boundary = rows[1].boundary = rows[1].accepting = true;
    return grammar.lexeme(std::make_shared<const Dfa>(std::move(rows)), {1, 9});
  }

  [[nodiscard]] ToolCall parse_call(ValueReader& reader) const {
    reader.expect(begin);
    const std::string_view mark = detail::trimmed(middle);
    const std::size_t at        = reader.position();
    const std::size_t length    = reader.rest().find(mark);
    if (length == std::string_view::npos) reader.fail("expected '" + std::string(mark) + "'");
    std::string_view name = detail::trimmed(reader.rest().substr(0, length));
    reader.skip(length + mark.size());
    if (numbered) {
      const std::size_t colon = name.rfind(':');
      const bool is_number =
          colon != std::string_view::npos && colon + 1 < name.size() &&
          name.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
      if (!is_number) reader.fail_at(at, "a name is followed by a colon and a number");
      name = name.substr(0, colon);
    }
    const bool is_name = !name.empty() && is_utf8(name) &&
                         std::none_of(name.begin(), name.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (!is_name) reader.fail_at(at, "expected the name of a tool");
    reader.skip_space();
    const std::size_t start = reader.position();
    ToolCall call{std::string(name), reader.value()};
    if (!call.arguments.is_object()) reader.fail_at(start, "the arguments are an object");
    reader.skip_space();
    if (!ends_text || !reader.at_end()) reader.expect(detail::trimmed(end));
    return call;
  }
};
static_assert(CallFormat<MarkedCall>);

}  // namespace tooldecode
