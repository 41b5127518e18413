/// \file
/// JsonCall: calls as JSON objects between two marks, as Hermes and Qwen write them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/json_schema.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/tools/value_writer.hpp>

namespace tooldecode {

/// `{"name": "f", "arguments": {...}}` inside a wrapper; text may precede the first call.
///
/// The wrapper's marks are plain text: a vocabulary may have them as tokens of their own or not.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Threads     a value
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite
/// \par Source      NousResearch, Hermes function calling; Qwen2.5's chat template
struct JsonCall {
  std::string begin;      ///< opens a call
  std::string end;        ///< closes it
  std::string separator;  ///< between the marks and the object, and between calls

  /// What values are written in.
  static constexpr ValueReader::Language language = ValueReader::Language::json;

  [[nodiscard]] static JsonCall hermes() { return {"<tool_call>", "</tool_call>", "\n"}; }

  [[nodiscard]] std::string_view trigger() const noexcept { return begin; }
  [[nodiscard]] static bool only_at_start() noexcept { return false; }

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const {
    std::string text;
    for (const ToolCall& call : calls) {
      if (!text.empty()) text += separator;
      text += begin + separator + "{\"name\": ";
      append_json_string(text, call.name);
      text += ", \"arguments\": " + write_json(call.arguments) + '}' + separator + end;
    }
    return text;
  }

  /// The calls of an answer; none where it has no opening mark.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& /*tools*/) const {
    std::vector<ToolCall> calls;
    const std::size_t first = text.find(begin);
    if (first == std::string_view::npos) return calls;
    ValueReader reader(text, ValueReader::Language::json, Errc::malformed_call);
    reader.allow_repeated_keys();
    for (reader.skip(first); !reader.at_end(); reader.skip_space()) {
      reader.expect(begin);
      reader.skip_space();
      const std::size_t at = reader.position();
      auto object          = reader.value();
      const bool is_call   = object.is_object() && object.size() == 2 && object.contains("name") &&
                           object["name"].is_string() && object.contains("arguments") &&
                           object["arguments"].is_object();
      if (!is_call) reader.fail_at(at, "a call is an object of a name and arguments");
      calls.push_back({object["name"].get<std::string>(), std::move(object["arguments"])});
      reader.skip_space();
      reader.expect(end);
    }
    return calls;
  }

  /// The first call's object, its closing mark and further calls, where the opening mark has been
  /// read.
  [[nodiscard]] NodeId calls_after_trigger(Grammar& grammar, const ToolSet& tools,
                                           std::span<const std::size_t> chosen,
                                           const ChoiceOptions& options) const {
    const SchemaOptions written{ValueSyntax::json, options.documented_order, options.whitespace,
                                options.leading_keys};
    std::vector<std::pair<std::string, NodeId>> names;
    const NodeId key = grammar.literal("\"arguments\"");
    NodeId space = 0, colon = 0;
    for (const std::size_t i : chosen) {
      const Tool& tool = tools[i];
      SchemaCompiler compiler(grammar, tool.parameters, written);
      space = compiler.whitespace();
      colon = compiler.colon();
      const NodeId arguments =
          grammar.tagged(static_cast<std::uint32_t>(i),
                         grammar.sequence({compiler.comma(), key, colon,
                                           compiler.value(tool.parameters, tool.parameters_pointer),
                                           space, grammar.literal("}")}));
      std::string name;
      append_json_string(name, tool.name);
      names.emplace_back(std::move(name), arguments);
    }
    // With whitespace 0 the marks' own separators stand where whitespace may.
    const NodeId gap = options.whitespace == 0 ? grammar.literal(separator) : space;
    const NodeId object =
        grammar.sequence({gap, grammar.literal("{"), space, grammar.literal("\"name\""), colon,
                          grammar.trie(names)});
    if (options.open_ended) {
      return grammar.sequence({object, grammar.lexeme(detail::any_text())});
    }
    const NodeId call = grammar.sequence({object, gap, grammar.literal(end)});
    const NodeId next = grammar.sequence({gap, grammar.literal(begin)});
    const Occurrences count{1, options.parallel ? Occurrences::unbounded : 1};
    return grammar.sequence(
        {grammar.repeat(call, count, next), options.whitespace == 0 ? grammar.empty() : space});
  }
};
static_assert(CallFormat<JsonCall>);

}  // namespace tooldecode
