#pragma once

#include <algorithm>
#include <cstdint>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode {

TOOLDECODE_INLINE DelimitedCall DelimitedCall::deepseek_v3() {
  return {"<｜tool▁calls▁begin｜>",
          "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
          "\n```json\n",
          "\n```<｜tool▁call▁end｜>",
          "\n",
          "<｜tool▁calls▁end｜>",
          false,
          false,
          "",
          other_deepseek_delimiters};
}

TOOLDECODE_INLINE DelimitedCall DelimitedCall::deepseek_v3_1() {
  return {"<｜tool▁calls▁begin｜>",
          "<｜tool▁call▁begin｜>",
          "<｜tool▁sep｜>",
          "<｜tool▁call▁end｜>",
          "",
          "<｜tool▁calls▁end｜>",
          false,
          false,
          "",
          other_deepseek_delimiters};
}

TOOLDECODE_INLINE DelimitedCall DelimitedCall::kimi_k2() {
  return {"<|tool_calls_section_begin|>",
          "<|tool_call_begin|>functions.",
          "<|tool_call_argument_begin|>",
          "<|tool_call_end|>",
          "",
          "<|tool_calls_section_end|>",
          true,
          true,
          "",
          "<\\|tool_call_section_begin\\|>"};
}

TOOLDECODE_INLINE DelimitedCall DelimitedCall::mistral() {
  return {"", "[TOOL_CALLS]", "[ARGS]", "", "", "", false, false, "[CALL_ID]"};
}

TOOLDECODE_INLINE DelimitedCall DelimitedCall::plamo_3() {
  return {"<|plamo:begin_tool_requests:plamo|>",
          "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
          "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>"
          "<|plamo:constrain|>json<|plamo:msg|>",
          "<|plamo:end_tool_arguments:plamo|>",
          "<|plamo:end_tool_request:plamo|>",
          "<|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>"};
}

TOOLDECODE_INLINE DelimitedCall DelimitedCall::functionary_3_1() {
  return {"", "<function=", ">", "</function>", "", ""};
}

TOOLDECODE_INLINE DelimitedCall DelimitedCall::functionary_3_2() {
  DelimitedCall format{"", ">>>", "\n", "", "", ""};
  format.bare_first     = true;
  format.response.begin = "all\n";
  return format;
}

TOOLDECODE_INLINE DelimitedCall DelimitedCall::react() {
  return {"",
          "Action: ",
          "\nAction Input: ",
          "",
          std::nullopt,
          "",
          false,
          false,
          "",
          "Action(\\s+\\d*\\s*|\\d+\\s*):"};
}

TOOLDECODE_INLINE std::string_view DelimitedCall::trigger() const noexcept {
  return section_begin.empty() ? begin : section_begin;
}

TOOLDECODE_INLINE std::vector<std::string> DelimitedCall::ends_reasoning() const {
  if (!lenient) return {};
  return {section_begin, std::string(call_delimiter())};
}

TOOLDECODE_INLINE std::string DelimitedCall::write(std::span<const ToolCall> calls) const {
  if (calls.empty()) return {};
  if (!between && calls.size() > 1) {
    throw Error(Errc::malformed_call, calls[1].name, "the format has one call in an answer");
  }
  std::string text = section_begin;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) text += *between;
    if (i > 0 || !bare_first) text += begin;
    text += calls[i].name;
    if (numbered) text += ':' + std::to_string(i);
    text += middle;
    text += schema::escape_excluded(text::write_json(calls[i].arguments),
                                    formats::closing_delimiters({end, section_end}));
    text += end;
  }
  return text + section_end;
}

TOOLDECODE_INLINE std::vector<ToolCall> DelimitedCall::parse(std::string_view text,
                                                             const ToolSet& tools) const {
  std::vector<ToolCall> calls;
  const auto first = find_first(text, tools);
  if (!first) return calls;
  text::ValueReader reader = formats::call_reader(text);
  reader.skip(*first);
  const bool has_section = reader.accept(section_begin);
  if (!has_section && !lenient) reader.expect(section_begin);
  do {
    reader.skip_space();
    if (!calls.empty()) reader.expect(formats::trimmed(*between));
    reader.skip_space();
    if (!calls.empty() || !bare_first || reader.rest().starts_with(begin)) reader.expect(begin);
    calls.push_back(parse_call(reader, tools));
    reader.skip_space();
  } while (between && !is_over(reader));
  formats::expect_end(reader);
  return calls;
}

TOOLDECODE_INLINE std::vector<CallOpening> DelimitedCall::openings(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  const bool exact    = options.whitespace == 0;
  const bool is_loose = lenient && !exact;
  // Readers accept the delimiter with and without the space that follows it.
  const auto opening    = trigger().substr(0, trigger().find_last_not_of(' ') + 1);
  const NodeId after_it = grammar.literal(trigger().substr(opening.size()));
  const NodeId space =
      schema::Spellings(grammar, text::ValueSyntax::json, options.whitespace).space();
  const auto named       = names(grammar, tools, chosen, options);
  const NodeId name      = grammar.trie(named);
  const NodeId delimiter = formats::delimiter(grammar, begin);
  const NodeId section   = section_begin.empty() ? after_it : grammar.sequence({space, delimiter});
  if (options.open_ended) {
    const NodeId rest = grammar.lexeme(formats::any_text());
    if (bare_first) return {{named[0].first, grammar.sequence({named[0].second, rest}), true}};
    return {{std::string(opening), grammar.sequence({section, name, rest})}};
  }
  // White space may follow the arguments anyway.
  const auto optional = [&](NodeId node) { return is_loose ? grammar.optional(node) : node; };
  const NodeId close  = optional(formats::delimiter(grammar, exact ? end : formats::trimmed(end)));
  const NodeId last =
      grammar.sequence({close, space, optional(formats::delimiter(grammar, section_end)),
                        section_end.empty() ? grammar.empty() : space});
  NodeId calls = name, more = grammar.empty();
  if (between && options.parallel) {
    const NodeId next =
        exact ? grammar.sequence({close, formats::delimiter(grammar, *between), delimiter})
              : grammar.sequence({close, space,
                                  formats::delimiter(grammar, formats::trimmed(*between)), space,
                                  delimiter});
    calls = grammar.repeat(name, options.calls(), next);
    if (bare_first) {
      more =
          grammar.repeat(grammar.sequence({next, name}), options.further_calls(), grammar.empty());
    }
  }
  std::vector<CallOpening> result{{std::string(opening), grammar.sequence({section, calls, last})}};
  if (is_loose) {
    const NodeId rest = grammar.literal(std::string_view(begin).substr(call_delimiter().size()));
    result.push_back({std::string(call_delimiter()), grammar.sequence({rest, calls, last})});
  } else if (lenient) {
    result.push_back(CallOpening::barred(grammar, std::string(call_delimiter())));
  }
  if (!bare_first) return result;
  for (const auto& [spelling, arguments] : named) {
    result.push_back({spelling, grammar.sequence({arguments, more, last}), true});
  }
  for (std::size_t i = 0; i < tools.size(); ++i) {
    if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
    result.push_back(CallOpening::barred(grammar, tools[i].name + middle, true));
  }
  return result;
}

TOOLDECODE_INLINE std::string_view DelimitedCall::name_end() const {
  const std::string_view sign = formats::trimmed(middle);
  return sign.empty() ? std::string_view(middle) : sign;
}

TOOLDECODE_INLINE std::optional<std::size_t> DelimitedCall::find_first(std::string_view text,
                                                                       const ToolSet& tools) const {
  if (bare_first) {
    const std::size_t start     = formats::leading_space(text);
    const std::string_view rest = text.substr(start);
    for (const Tool& tool : tools) {
      if (rest.starts_with(tool.name + middle)) return start;
    }
  }
  std::size_t first = text.find(trigger());
  if (lenient) first = std::min(first, text.find(call_delimiter()));
  return first == std::string_view::npos ? std::nullopt : std::optional(first);
}

TOOLDECODE_INLINE std::string_view DelimitedCall::call_delimiter() const {
  return std::string_view(begin).substr(0, formats::delimiter_length(begin));
}

TOOLDECODE_INLINE std::vector<std::pair<std::string, NodeId>> DelimitedCall::names(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  const auto middles =
      numbered ? std::vector<std::string>{":"} : formats::delimiter_spellings(middle);
  std::vector<std::string_view> delimiters;
  for (const std::string_view delimiter :
       {std::string_view(section_begin), std::string_view(begin), std::string_view(middle),
        std::string_view(end), std::string_view(section_end), std::string_view(id)}) {
    delimiters.push_back(formats::trimmed(delimiter));
  }
  std::vector<std::pair<std::string, NodeId>> result;
  for (const std::size_t i : chosen) {
    const Tool& tool = tools[i];
    formats::refuse_tool(tool, formats::why_not_carried(tool.name, delimiters, middle));
    if (bare_first && formats::has_outer_space(tool.name)) {
      formats::refuse_tool(tool, "white space stands around it");
    }
    if (bare_first && tool.name + middle == response.begin) {
      formats::refuse_tool(tool, "text begins so");
    }
    const auto arguments = [&](Grammar& part) {
      SchemaCompiler compiler(
          part, tool.parameters,
          formats::parameter_options(tool, options, text::ValueSyntax::json,
                                     formats::closing_delimiters({end, section_end})));
      const NodeId opening =
          numbered ? part.sequence({formats::call_number(part), formats::delimiter(part, middle)})
                   : part.empty();
      return part.sequence({opening, compiler.whitespace(),
                            part.tagged(formats::mark::arguments,
                                        compiler.value(tool.parameters, tool.parameters_pointer)),
                            compiler.whitespace()});
    };
    const NodeId after_name = grammar.part(static_cast<std::uint32_t>(i), arguments);
    for (const std::string& after : middles) result.emplace_back(tool.name + after, after_name);
    if (id.empty() || options.whitespace == 0) continue;
    const NodeId after_id = grammar.sequence(
        {formats::call_id(grammar), formats::delimiter(grammar, middle), after_name});
    for (const std::string& delimiter : formats::delimiter_spellings(id)) {
      result.emplace_back(tool.name + delimiter, after_id);
    }
  }
  return result;
}

TOOLDECODE_INLINE bool DelimitedCall::is_over(text::ValueReader& reader) const {
  if (section_end.empty() || (lenient && reader.at_end())) return reader.at_end();
  return reader.accept(section_end);
}

TOOLDECODE_INLINE std::string DelimitedCall::parse_name(text::ValueReader& reader,
                                                        const ToolSet& tools) const {
  const std::string_view delimiter = name_end();
  const std::size_t at             = reader.position();
  const std::size_t length         = reader.rest().find(delimiter);
  if (length == std::string_view::npos) reader.fail("expected '" + std::string(delimiter) + "'");
  std::string_view name = reader.rest().substr(0, length);
  reader.skip(length + delimiter.size());
  if (!id.empty()) name = name.substr(0, name.find(id));
  const std::string_view before_delimiter =
      std::string_view(middle).substr(0, middle.find(delimiter));
  std::string_view exact = name;
  if (exact.ends_with(before_delimiter)) exact.remove_suffix(before_delimiter.size());
  const auto without_number = [&](std::string_view numbered_name) {
    const std::size_t colon = numbered_name.rfind(':');
    const bool is_number =
        colon != std::string_view::npos && colon + 1 < numbered_name.size() &&
        numbered_name.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
    if (!is_number) reader.fail_at(at, "a name is followed by a colon and a number");
    return numbered_name.substr(0, colon);
  };
  if (numbered) {
    exact = name = without_number(name.substr(0, name.find_last_not_of(" \t\r\n") + 1));
  }
  if (tools.find(exact)) return std::string(exact);
  name = formats::trimmed(name);
  if (!formats::is_name(name)) reader.fail_at(at, "expected the name of a tool");
  return std::string(name);
}

TOOLDECODE_INLINE ToolCall DelimitedCall::parse_call(text::ValueReader& reader,
                                                     const ToolSet& tools) const {
  std::string name = parse_name(reader, tools);
  ToolCall call{std::move(name), formats::read_arguments(reader)};
  const std::string_view close = formats::trimmed(end);
  if (!reader.accept(close) && !lenient) reader.expect(close);
  return call;
}

}  // namespace tooldecode
