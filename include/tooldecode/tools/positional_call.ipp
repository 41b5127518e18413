/// \file
/// What positional_call.hpp declares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/call_marks.hpp>
#include <tooldecode/tools/carried_name.hpp>
#include <tooldecode/tools/delimiter.hpp>
#include <tooldecode/tools/listed_arguments.hpp>
#include <tooldecode/tools/positional_call.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::string PositionalCall::write(std::span<const ToolCall> calls,
                                                    const ToolSet& tools) const {
  if (calls.empty()) return {};
  const ToolCall& call = calls[0];
  if (calls.size() > 1) {
    throw Error(Errc::malformed_call, calls[1].name, "the format has one call in an answer");
  }
  std::vector<std::string> names;
  if (const auto known = tools.find(call.name)) {
    names = argument_names(tools[*known]);
  } else {
    for (const auto& [key, value] : call.arguments.items()) names.push_back(key);
  }
  std::string text  = begin + call.name + middle;
  std::size_t given = 0;
  for (; given < names.size() && call.arguments.contains(names[given]); ++given) {
    if (given > 0) text += ", ";
    text += text::write_json(call.arguments[names[given]]);
  }
  if (given < call.arguments.size()) {
    throw Error(Errc::malformed_call, call.name,
                "arguments without keys are documented, and none before them is left out");
  }
  return text + end;
}

TOOLDECODE_INLINE std::vector<ToolCall> PositionalCall::parse(std::string_view text,
                                                              const ToolSet& tools) const {
  text::ValueReader reader(text, text::ValueReader::Language::json, Errc::malformed_call);
  reader.allow_repeated_keys();
  const Tool* tool = nullptr;
  for (std::size_t at = text.find(begin); at != std::string_view::npos && tool == nullptr;
       at             = text.find(begin, at + 1)) {
    const std::string_view rest = text.substr(at + begin.size());
    for (const Tool& one : tools) {
      const bool is_here =
          rest.starts_with(one.name) && rest.substr(one.name.size()).starts_with(middle);
      if (is_here && (tool == nullptr || tool->name.size() < one.name.size())) tool = &one;
    }
    if (tool == nullptr && !is_delimiter) continue;
    reader.skip(at + begin.size());
    if (tool == nullptr) reader.fail("expected the name of a tool and '" + middle + "'");
    reader.skip(tool->name.size() + middle.size());
  }
  if (tool == nullptr) return {};
  const auto names = argument_names(*tool);
  ToolCall call{.name = tool->name};
  reader.skip_space();
  while (!reader.accept(end)) {
    const std::size_t given = call.arguments.size();
    if (given > 0) reader.expect(",");
    if (given == names.size()) reader.fail("more arguments than documented parameters");
    call.arguments[names[given]] = reader.value();
    reader.skip_space();
  }
  reader.skip_space();
  if (!reader.at_end()) reader.fail("expected the end of the text after the call");
  return {std::move(call)};
}

TOOLDECODE_INLINE std::pair<std::string, JsonValue> PositionalCall::read_argument(
    const Tool& tool, std::size_t given, std::string_view /*before*/, std::string_view text) {
  text::ValueReader value(text, text::ValueReader::Language::json, Errc::malformed_call);
  value.allow_repeated_keys();
  const auto names = argument_names(tool);
  if (given >= names.size()) value.fail("more arguments than documented parameters");
  return {names[given], value.value()};
}

TOOLDECODE_INLINE std::vector<CallOpening> PositionalCall::openings(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  std::vector<std::pair<std::string, NodeId>> names;
  for (const std::size_t i : chosen) {
    const std::string_view delimiter = begin;
    tools::refuse_tool(tools[i],
                       tools::why_not_carried(tools[i].name, std::span(&delimiter, 1), middle));
    const auto call = [&](Grammar& part) {
      SchemaOptions written = tools::parameter_options(tools[i], options);
      written.leading_keys.clear();
      SchemaCompiler compiler(part, tools[i].parameters, std::move(written));
      const NodeId space = compiler.whitespace();
      const NodeId list =
          part.sequence({space, arguments(part, compiler, tools[i], options.leading_keys), space});
      return options.open_ended ? part.sequence({list, part.lexeme(tools::any_text())})
                                : part.sequence({list, tools::delimiter(part, end)});
    };
    names.emplace_back(tools[i].name + middle, grammar.part(static_cast<std::uint32_t>(i), call));
  }
  CallOpening opening{begin, grammar.trie(names)};
  if (!is_delimiter) {
    for (const Tool& tool : tools) opening.longer.push_back(begin + tool.name + middle);
  }
  return {std::move(opening)};
}

TOOLDECODE_INLINE NodeId PositionalCall::arguments(Grammar& grammar, SchemaCompiler& compiler,
                                                   const Tool& tool,
                                                   const std::vector<std::string>& leading) {
  tools::check_listed_arguments(compiler, tool);
  const auto names    = argument_names(tool);
  const auto required = required_names(tool);
  for (std::size_t i = 0; i < leading.size(); ++i) {
    if (i < names.size() && names[i] == leading[i]) continue;
    throw Error(Errc::invalid_option, leading[i],
                "must be the next argument: those without keys keep their order");
  }
  // From the last argument to the first: what may follow once those before are written.
  NodeId tail   = grammar.empty();
  bool optional = true;
  for (std::size_t i = names.size(); i-- > 0;) {
    const auto [schema, pointer] = tools::argument_schema(tool, names[i]);
    const bool is_required       = i < leading.size() || std::find(required.begin(), required.end(),
                                                                   names[i]) != required.end();
    const NodeId value           = grammar.tagged(tools::mark::argument,
                                                  grammar.tagged(argument_tag + static_cast<std::uint32_t>(i),
                                                                 compiler.value(*schema, pointer)));
    const NodeId here =
        grammar.sequence({i == 0 ? grammar.empty() : compiler.comma(), value, tail});
    optional = optional && !is_required;
    tail     = optional ? grammar.optional(here) : here;
  }
  return tail;
}

}  // namespace tooldecode
