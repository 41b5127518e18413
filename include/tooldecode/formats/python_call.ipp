#pragma once

#include <algorithm>
#include <cstdint>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/listed_arguments.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode {

TOOLDECODE_INLINE PythonCall PythonCall::llama_4() {
  PythonCall format{"<|python_start|>", "<|python_end|>"};
  format.bare_at_start = true;
  return format;
}

TOOLDECODE_INLINE std::string PythonCall::write(std::span<const ToolCall> calls) const {
  std::string text = begin + open;
  for (const ToolCall& call : calls) {
    if (&call != calls.data()) text += separator;
    text += call.name + '(';
    bool first = true;
    for (const auto& [key, value] : call.arguments.items()) {
      if (!std::exchange(first, false)) text += ", ";
      text += key + '=' + text::write_python_literal(value);
    }
    text += ')';
  }
  return text + close + end;
}

TOOLDECODE_INLINE std::vector<ToolCall> PythonCall::parse(std::string_view text,
                                                          const ToolSet& tools) const {
  text::ValueReader reader = formats::call_reader(text, language);
  std::vector<ToolCall> calls;
  reader.skip_space();
  const bool is_bare = begin.empty() || (bare_at_start && reader.rest().starts_with(open));
  if (is_bare) {
    if (!reader.accept(open)) return calls;
  } else {
    const std::size_t first = reader.rest().find(begin);
    if (first == std::string_view::npos) return calls;
    reader.skip(first + begin.size());
    reader.skip_space();
    reader.expect(open);
  }
  if (!text::is_utf8(reader.rest())) reader.fail("the calls are not UTF-8");
  reader.skip_space();
  while (!reader.rest().starts_with(closing())) {
    if (!calls.empty()) {
      reader.expect(formats::trimmed(separator));
      reader.skip_space();
    }
    calls.push_back(parse_call(reader, tools));
    reader.skip_space();
  }
  reader.expect(close);
  reader.skip_space();
  if (!is_bare) reader.expect(end);
  formats::expect_end(reader);
  return calls;
}

TOOLDECODE_INLINE std::pair<std::string, JsonValue> PythonCall::read_argument(
    const Tool& tool, std::size_t /*given*/, std::string_view before, std::string_view text) {
  text::ValueReader key = formats::call_reader(before, language);
  key.skip_space();
  key.accept(",");
  key.skip_space();
  auto name = keyword(key, argument_names(tool));
  if (!name) key.fail("expected the name of an argument");
  return {std::move(*name), formats::call_reader(text, language).value()};
}

TOOLDECODE_INLINE std::vector<CallOpening> PythonCall::openings(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  const schema::Spellings text(grammar, text::ValueSyntax::python, options.whitespace);
  const NodeId space = text.space();
  std::vector<std::pair<std::string, NodeId>> names;
  for (const std::size_t i : chosen) {
    const Tool& tool = tools[i];
    check_name(tool, tools);
    const auto arguments = [&](Grammar& part) {
      check_arguments(tool);
      SchemaCompiler compiler(part, tool.parameters,
                              formats::parameter_options(tool, options, text::ValueSyntax::python));
      return part.sequence({compiler.whitespace(),
                            compiler.keyword_arguments(tool.parameters, tool.parameters_pointer,
                                                       formats::mark::argument),
                            compiler.whitespace(), part.literal(")")});
    };
    names.emplace_back(tool.name + '(', grammar.part(static_cast<std::uint32_t>(i), arguments));
  }
  const NodeId call = grammar.trie(names);
  const NodeId before =
      begin.empty() ? space : grammar.sequence({space, grammar.literal(open), space});
  if (options.open_ended) {
    const NodeId rest = grammar.lexeme(formats::any_text());
    return {{std::string(trigger()), grammar.sequence({before, call, rest}), only_at_start()}};
  }
  const bool exact = options.whitespace == 0;
  const auto sign  = formats::trimmed(separator);
  const NodeId next =
      exact ? grammar.literal(separator) : grammar.sequence({space, grammar.literal(sign), space});
  const NodeId list = grammar.repeat(call, options.calls(), next);
  const NodeId over = grammar.sequence({list, space, grammar.literal(close)});
  if (begin.empty()) return {{open, grammar.sequence({space, over}), true}};
  std::vector<CallOpening> result{
      {begin, grammar.sequence({before, over, space, formats::delimiter(grammar, end), space})}};
  if (bare_at_start) {
    result.push_back(exact ? CallOpening::barred(grammar, open, true)
                           : CallOpening{open, grammar.sequence({space, over, space}), true});
  }
  return result;
}

TOOLDECODE_INLINE std::string_view PythonCall::without_space(std::string_view name) {
  constexpr std::string_view space = " \t\r\n\f";
  const std::size_t first          = std::min(name.find_first_not_of(space), name.size());
  return name.substr(first, name.find_last_not_of(space) + 1 - first);
}

TOOLDECODE_INLINE std::optional<std::string> PythonCall::why_not(const std::string& name,
                                                                 std::string_view behind,
                                                                 char closing) {
  if (auto why = formats::why_not_carried(name, std::span(&behind, 1), "")) return why;
  const std::string_view inner = without_space(name);
  if (inner.empty()) return "it is white space";
  if (inner.front() == closing) return "it begins with what closes a list";
  return std::nullopt;
}

TOOLDECODE_INLINE void PythonCall::check_name(const Tool& tool, const ToolSet& tools) const {
  formats::refuse_tool(tool, why_not(tool.name, "(", closing().front()));
  if (!formats::has_outer_space(tool.name)) return;
  for (const Tool& other : tools) {
    if (&other == &tool || without_space(other.name) != without_space(tool.name)) continue;
    formats::refuse_tool(tool, "another differs in white space only");
  }
}

TOOLDECODE_INLINE void PythonCall::check_arguments(const Tool& tool) {
  const std::vector<std::string> names = argument_names(tool);
  for (const std::string& name : names) {
    formats::refuse_argument(tool, name, why_not(name, "=", ')'));
    if (!formats::has_outer_space(name)) continue;
    for (const std::string& other : names) {
      if (&other == &name || without_space(other) != without_space(name)) continue;
      formats::refuse_argument(tool, name, "another differs in white space only");
    }
  }
  if (formats::are_listed(tool)) return;
  // Names that only combinations document are read like undocumented names.
  schema::Reader reader(tool.parameters, formats::parameter_rules(tool));
  const schema::FormId form = reader.form(tool.parameters, tool.parameters_pointer);
  for (const schema::ObjectForm& object : reader.written(form).objects) {
    for (const auto& member : object.members) {
      if (std::find(names.begin(), names.end(), member.name) != names.end()) continue;
      if (!formats::has_outer_space(member.name) &&
          member.name.find_first_of("=,()[]{}'\"") == std::string::npos) {
        continue;
      }
      formats::refuse_name(tool.parameters_pointer, member.name, "it is not documented");
    }
  }
}

TOOLDECODE_INLINE bool PythonCall::lists_all_arguments(const Tool& tool) {
  const auto others = tool.parameters.find("additionalProperties");
  if (others != tool.parameters.end()) return *others == JsonValue(false);
  return tool.strict && formats::are_listed(tool);
}

TOOLDECODE_INLINE ToolCall PythonCall::parse_call(text::ValueReader& reader, const ToolSet& tools) {
  ToolCall call;
  std::size_t longest = 0;
  for (const Tool& tool : tools) {
    const std::size_t end = end_of(reader.rest(), tool.name, '(');
    if (end > longest) longest = end, call.name = tool.name;
  }
  if (longest != 0) {
    reader.skip(longest);
  } else {
    const std::size_t end = reader.rest().find_first_of("([]{}=,'\" \t\r\n)");
    if (end == 0 || end == std::string_view::npos) reader.fail("expected the name of a tool");
    call.name = reader.rest().substr(0, end);
    reader.skip(end);
    reader.skip_space();
    reader.expect("(");
  }
  const auto known       = tools.find(call.name);
  const Tool* const tool = known ? &tools[*known] : nullptr;
  const auto names       = tool != nullptr ? argument_names(*tool) : std::vector<std::string>();
  call.arguments         = JsonValue::object();
  std::size_t position   = 0;
  bool named             = false;
  for (bool first = true;; first = false) {
    reader.skip_space();
    if (reader.accept(")")) return call;
    if (!first) {
      reader.expect(",");
      reader.skip_space();
      if (reader.accept(")")) return call;
    }
    const std::size_t at = reader.position();
    auto key             = keyword(reader, names);
    if (key) {
      named = true;
    } else {
      if (named) reader.fail_at(at, "a positional argument follows a named one");
      key = documented_name(reader, tool, position++);
    }
    // Like JSON's: where the document admits other keys, their last value counts.
    const bool is_once = tool == nullptr || lists_all_arguments(*tool) ||
                         std::find(names.begin(), names.end(), *key) != names.end();
    if (is_once && call.arguments.contains(*key)) {
      reader.fail_at(at, "the argument \"" + *key + "\" is given twice");
    }
    call.arguments[*key] = reader.value();
  }
}

TOOLDECODE_INLINE std::size_t PythonCall::end_of(std::string_view rest, std::string_view name,
                                                 char delimiter) {
  name.remove_prefix(std::min(name.find_first_not_of(" \t\r\n\f"), name.size()));
  if (!rest.starts_with(name)) return 0;
  const std::size_t end = rest.find_first_not_of(" \t\r\n", name.size());
  return end != std::string_view::npos && rest[end] == delimiter ? end + 1 : 0;
}

TOOLDECODE_INLINE std::optional<std::string> PythonCall::keyword(
    text::ValueReader& reader, std::span<const std::string> names) {
  const std::string_view rest = reader.rest();
  std::size_t longest         = 0;
  std::string documented;
  for (const std::string& name : names) {
    const std::size_t end = end_of(rest, name, '=');
    if (end > longest) longest = end, documented = name;
  }
  if (longest != 0) {
    reader.skip(longest);
    return documented;
  }
  const std::size_t end = rest.find_first_of("=,()[]{}'\"");
  if (end == std::string_view::npos || rest[end] != '=' || end == 0) return std::nullopt;
  const std::size_t last = rest.find_last_not_of(" \t\r\n", end - 1);
  if (last == std::string_view::npos) return std::nullopt;
  reader.skip(end + 1);
  return std::string(rest.substr(0, last + 1));
}

TOOLDECODE_INLINE std::string PythonCall::documented_name(const text::ValueReader& reader,
                                                          const Tool* tool, std::size_t position) {
  if (tool == nullptr) reader.fail("a positional argument of a tool that is not documented");
  if (tool->parameters.contains("properties")) {
    for (const auto& [key, schema] : tool->parameters["properties"].items()) {
      if (position-- == 0) return key;
    }
  }
  reader.fail("more positional arguments than documented parameters");
}

TOOLDECODE_INLINE PythonCall PythonCall::olmo_3() {
  return {"<function_calls>", "</function_calls>", "", "", "\n"};
}

}  // namespace tooldecode
