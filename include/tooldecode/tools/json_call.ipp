/// \file
/// What json_call.hpp declares.
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

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/call_marks.hpp>
#include <tooldecode/tools/delimiter.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/tools/value_writer.hpp>

namespace tooldecode {

TOOLDECODE_INLINE JsonCall JsonCall::llama() {
  return {"<|python_tag|>", "", "", "parameters", "; ", false, true};
}

TOOLDECODE_INLINE JsonCall JsonCall::mistral() {
  return {"[TOOL_CALLS]", "", " ", "arguments", ", ", true, false, "id"};
}

TOOLDECODE_INLINE std::string_view JsonCall::trigger() const noexcept {
  if (!begin.empty()) return begin;
  return list ? "[" : "{";
}

TOOLDECODE_INLINE std::string JsonCall::write(std::span<const ToolCall> calls) const {
  std::string text;
  for (const ToolCall& call : calls) {
    text += text.empty() ? begin + separator + (list ? "[" : "")
            : between    ? *between
                         : separator + begin + separator;
    text += "{\"name\": ";
    tools::append_json_string(text, call.name);
    text += ", \"" + arguments + "\": " + tools::write_json(call.arguments) + '}';
    if (!between) text += separator + end;
  }
  if (between && !calls.empty()) text += (list ? "]" : "") + end;
  return text;
}

TOOLDECODE_INLINE std::vector<ToolCall> JsonCall::parse(std::string_view text,
                                                        const ToolSet& /*tools*/) const {
  std::vector<ToolCall> calls;
  tools::ValueReader reader(text, tools::ValueReader::Language::json, Errc::malformed_call);
  reader.allow_repeated_keys();
  if (begin.empty()) {
    reader.skip_space();
    if (!reader.rest().starts_with(trigger())) return calls;
  } else {
    const std::size_t start = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const bool is_bare      = bare_at_start && text.substr(start).starts_with('{');
    const std::size_t first = is_bare ? start : text.find(begin);
    if (first == std::string_view::npos) return calls;
    reader.skip(first);
  }
  if (between) {
    parse_all(reader, calls);
    return calls;
  }
  for (; !reader.at_end(); reader.skip_space()) {
    reader.expect(begin);
    calls.push_back(parse_call(reader));
    reader.expect(end);
  }
  return calls;
}

TOOLDECODE_INLINE std::vector<CallOpening> JsonCall::openings(Grammar& grammar,
                                                              const ToolSet& tools,
                                                              std::span<const std::size_t> chosen,
                                                              const ChoiceOptions& options) const {
  const schema::Spellings text(grammar, text::ValueSyntax::json, options.whitespace);
  const NodeId space = text.space();
  // With whitespace 0 the delimiters' own separators stand where whitespace may.
  const bool exact   = options.whitespace == 0;
  const NodeId gap   = exact ? grammar.literal(separator) : space;
  const NodeId body  = grammar.sequence({space, grammar.literal("\"name\""), text.colon(),
                                         grammar.trie(names(grammar, tools, chosen, options))});
  const NodeId whole = grammar.sequence({grammar.literal("{"), body});
  NodeId before      = gap;
  if (list) {
    const NodeId open = grammar.sequence({grammar.literal("["), space});
    before            = begin.empty() ? space : grammar.sequence({gap, open});
  }
  const bool is_open = begin.empty() && !list;  // the brace was the trigger
  const NodeId first = is_open ? body : grammar.sequence({before, whole});
  if (options.open_ended) {
    const NodeId rest = grammar.lexeme(tools::any_text());
    return {{std::string(trigger()), grammar.sequence({first, rest}), only_at_start()}};
  }
  const NodeId last             = exact ? grammar.empty() : space;
  const text::Occurrences count = options.calls();
  if (!between) {
    const NodeId call = grammar.sequence({before, whole, gap, tools::delimiter(grammar, end)});
    const NodeId next = grammar.sequence({gap, tools::delimiter(grammar, begin)});
    return {{std::string(trigger()), grammar.sequence({grammar.repeat(call, count, next), last}),
             only_at_start()}};
  }
  const NodeId next =
      exact ? grammar.literal(*between)
            : grammar.sequence({space, grammar.literal(tools::trimmed(*between)), space});
  const NodeId close = list ? grammar.sequence({space, grammar.literal("]")}) : grammar.empty();
  const NodeId ended = grammar.sequence({close, tools::delimiter(grammar, end), last});
  const auto bare    = [&] {
    const NodeId object = grammar.sequence({next, whole});
    return grammar.sequence(
        {body, grammar.repeat(object, options.further_calls(), grammar.empty()), ended});
  };
  const auto marked = [&] {
    return grammar.sequence({before, grammar.repeat(whole, count, next), ended});
  };
  std::vector<CallOpening> result{
      {std::string(trigger()), is_open ? bare() : marked(), only_at_start()}};
  if (bare_at_start) {
    result.push_back(exact ? CallOpening::barred(grammar, "{", true)
                           : CallOpening{"{", bare(), true});
  }
  return result;
}

TOOLDECODE_INLINE std::vector<std::pair<std::string, NodeId>> JsonCall::names(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  const SchemaOptions written{text::ValueSyntax::json, options.documented_order, options.whitespace,
                              options.leading_keys};
  std::vector<std::pair<std::string, NodeId>> result;
  result.reserve(chosen.size());
  for (const std::size_t i : chosen) {
    const Tool& tool    = tools[i];
    const auto argument = [&](Grammar& part) {
      SchemaCompiler compiler(part, tool.parameters, written);
      const NodeId value = part.tagged(tools::mark::arguments,
                                       compiler.value(tool.parameters, tool.parameters_pointer));
      NodeId id          = part.empty();
      if (!call_id.empty() && options.whitespace != 0) {
        id = part.optional(part.sequence(
            {compiler.whitespace(), compiler.comma(), part.literal('"' + call_id + '"'),
             compiler.colon(), part.literal("\""), tools::call_id(part), part.literal("\"")}));
      }
      return part.sequence({compiler.comma(), part.literal('"' + arguments + '"'), compiler.colon(),
                            value, id, compiler.whitespace(), part.literal("}")});
    };
    std::string name;
    name.reserve(tool.name.size() + 2);
    tools::append_json_string(name, tool.name);
    result.emplace_back(std::move(name), grammar.part(static_cast<std::uint32_t>(i), argument));
  }
  return result;
}

TOOLDECODE_INLINE ToolCall JsonCall::parse_call(tools::ValueReader& reader) const {
  reader.skip_space();
  const std::size_t at = reader.position();
  auto object          = reader.value();
  if (!call_id.empty() && object.is_object() && object.contains(call_id) &&
      object[call_id].is_string()) {
    object.erase(call_id);
  }
  const bool is_call = object.is_object() && object.size() == 2 && object.contains("name") &&
                       object["name"].is_string() && object.contains(arguments) &&
                       object[arguments].is_object();
  if (!is_call) reader.fail_at(at, "a call is an object of a name and " + arguments);
  reader.skip_space();
  return {object["name"].get<std::string>(), std::move(object[arguments])};
}

TOOLDECODE_INLINE void JsonCall::parse_all(tools::ValueReader& reader,
                                           std::vector<ToolCall>& calls) const {
  const auto is_over = [&] { return list ? reader.accept("]") : reader.at_end(); };
  if (!bare_at_start || !reader.rest().starts_with('{')) reader.expect(begin);
  reader.skip_space();
  if (list) reader.expect("[");
  do {
    if (!calls.empty()) reader.expect(tools::trimmed(*between));
    calls.push_back(parse_call(reader));
  } while (!is_over());
  reader.skip_space();
  reader.expect(end);
  reader.skip_space();
  if (!reader.at_end()) reader.fail("expected the end of the text after the calls");
}

}  // namespace tooldecode
