/// \file
/// PythonCall: calls as a Python list, `[f(a=1, b='x'), g()]`.
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
#include <tooldecode/tools/code_point.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/tools/value_writer.hpp>

namespace tooldecode {

/// The format of API-Bank, BFCL and Llama 3.2: a list of calls with keyword arguments.
///
/// An answer is a call list from its first byte that is not white space, or it makes no call. When
/// reading, positional arguments take the documented names in their order.
///
/// \par Complexity  write and parse O(length of the text)
/// \par Threads     stateless
/// \par Errors      Error{malformed_call} from `parse` with the byte, and from `write` for numbers
///                  that are not finite
/// \par Source      Li et al., API-Bank, arXiv:2304.08244; Patil et al., Gorilla, arXiv:2305.15334
struct PythonCall {
  /// What values are written in.
  static constexpr ValueReader::Language language = ValueReader::Language::python;

  [[nodiscard]] static std::string_view trigger() noexcept { return "["; }
  [[nodiscard]] static bool only_at_start() noexcept { return true; }

  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const {
    std::string text = "[";
    for (const ToolCall& call : calls) {
      if (text.size() > 1) text += ", ";
      text += call.name + '(';
      bool first = true;
      for (const auto& [key, value] : call.arguments.items()) {
        if (!std::exchange(first, false)) text += ", ";
        text += key + '=' + write_python_literal(value);
      }
      text += ')';
    }
    return text + ']';
  }

  /// The calls of an answer; none where it does not begin with a call list.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const {
    ValueReader reader(text, ValueReader::Language::python, Errc::malformed_call);
    reader.allow_repeated_keys();
    std::vector<ToolCall> calls;
    reader.skip_space();
    if (!reader.accept("[")) return calls;
    if (!is_utf8(text)) reader.fail("the calls are not UTF-8");
    reader.skip_space();
    while (!reader.accept("]")) {
      if (!calls.empty()) {
        reader.expect(",");
        reader.skip_space();
      }
      calls.push_back(parse_call(reader, tools));
      reader.skip_space();
    }
    reader.skip_space();
    if (!reader.at_end()) reader.fail("expected the end of the text after the calls");
    return calls;
  }

  /// `f(a=1), g()]`, where the opening bracket has been read.
  [[nodiscard]] NodeId calls_after_trigger(Grammar& grammar, const ToolSet& tools,
                                           std::span<const std::size_t> chosen,
                                           const ChoiceOptions& options) const {
    const SchemaOptions written{ValueSyntax::python, options.documented_order, options.whitespace,
                                options.leading_keys};
    std::vector<std::pair<std::string, NodeId>> names;
    NodeId space = 0, comma = 0;
    for (const std::size_t i : chosen) {
      const Tool& tool = tools[i];
      SchemaCompiler compiler(grammar, tool.parameters, written);
      space                  = compiler.whitespace();
      comma                  = compiler.comma();
      const NodeId arguments = grammar.tagged(
          static_cast<std::uint32_t>(i),
          grammar.sequence({space,
                            compiler.keyword_arguments(tool.parameters, tool.parameters_pointer),
                            space, grammar.literal(")")}));
      names.emplace_back(tool.name + '(', arguments);
    }
    const NodeId call = grammar.trie(names);
    const Occurrences count{1, options.parallel ? Occurrences::unbounded : 1};
    return grammar.sequence(
        {space, grammar.repeat(call, count, comma), space, grammar.literal("]")});
  }

 private:
  static ToolCall parse_call(ValueReader& reader, const ToolSet& tools) {
    ToolCall call;
    const std::size_t end = reader.rest().find_first_of("([]{}=,'\" \t\r\n)");
    if (end == 0 || end == std::string_view::npos) reader.fail("expected the name of a tool");
    call.name = reader.rest().substr(0, end);
    reader.skip(end);
    reader.skip_space();
    reader.expect("(");
    call.arguments       = nlohmann::ordered_json::object();
    std::size_t position = 0;
    bool named           = false;
    for (bool first = true;; first = false) {
      reader.skip_space();
      if (reader.accept(")")) return call;
      if (!first) {
        reader.expect(",");
        reader.skip_space();
        if (reader.accept(")")) return call;
      }
      const std::size_t at = reader.position();
      std::string key      = keyword(reader);
      if (key.empty()) {
        if (named) reader.fail_at(at, "a positional argument follows a named one");
        key = documented_name(reader, tools, call.name, position++);
      } else {
        named = true;
      }
      if (call.arguments.contains(key)) {
        reader.fail_at(at, "the argument \"" + key + "\" is given twice");
      }
      call.arguments[key] = reader.value();
    }
  }
  // `name=` at the cursor, or nothing where a value stands alone.
  static std::string keyword(ValueReader& reader) {
    const std::string_view rest = reader.rest();
    const std::size_t end       = rest.find_first_of("=,()[]{}'\"");
    if (end == std::string_view::npos || rest[end] != '=' || end == 0) return {};
    const std::size_t last = rest.find_last_not_of(" \t\r\n", end - 1);
    if (last == std::string_view::npos) return {};
    reader.skip(end + 1);
    return std::string(rest.substr(0, last + 1));
  }
  static std::string documented_name(const ValueReader& reader, const ToolSet& tools,
                                     const std::string& name, std::size_t position) {
    const auto tool = tools.find(name);
    if (!tool) reader.fail("a positional argument of a tool that is not documented");
    const auto& parameters = tools[*tool].parameters;
    if (parameters.contains("properties")) {
      for (const auto& [key, schema] : parameters["properties"].items()) {
        if (position-- == 0) return key;
      }
    }
    reader.fail("more positional arguments than documented parameters");
  }
};
static_assert(CallFormat<PythonCall>);

}  // namespace tooldecode
