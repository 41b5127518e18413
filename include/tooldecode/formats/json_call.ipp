#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode::detail {

// White space in a fence, in bytes: a line end and an indent of eleven levels.
inline constexpr std::uint32_t fence_whitespace = 23;

// The beginnings of a tool's call in a fence, one for each layout; the name is JSON.
TOOLDECODE_INLINE std::vector<std::string> beginnings(const JsonCall& format,
                                                      const formats::CallFence& fence,
                                                      std::string_view name_text) {
  std::vector<std::string> result;
  for (const auto& [space, colon] : std::array<std::pair<std::string_view, std::string_view>, 4>{
           {{"", ":"}, {"", ": "}, {"\n  ", ": "}, {"\n    ", ": "}}}) {
    std::string beginning = fence.begin + '{';
    beginning.append(space).append('"' + format.name + '"').append(colon).append(name_text);
    result.push_back(std::move(beginning));
  }
  return result;
}

// The first fence in a text, and its position.
TOOLDECODE_INLINE std::optional<std::pair<std::size_t, const formats::CallFence*>> find_fence(
    const JsonCall& format, std::string_view text, const ToolSet& tools) {
  std::optional<std::pair<std::size_t, const formats::CallFence*>> first;
  const std::size_t start = formats::leading_space(text);
  for (const formats::CallFence& fence : format.fences) {
    for (std::size_t at = fence.begin.empty() ? start : text.find(fence.begin);
         at != std::string_view::npos && (!first || at < first->first);
         at = fence.begin.empty() ? text.npos : text.find(fence.begin, at + 1)) {
      const bool is_call = std::ranges::any_of(tools, [&](const Tool& tool) {
        std::string spelled;
        text::append_json_string(spelled, tool.name);
        return std::ranges::any_of(
            beginnings(format, fence, spelled),
            [&](const std::string& beginning) { return text.substr(at).starts_with(beginning); });
      });
      if (is_call) first = {at, &fence};
    }
  }
  return first;
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE JsonCall JsonCall::qwen_2_5() {
  JsonCall format = hermes();
  format.fences   = {{"```json\n", "\n```"}, {"", ""}};
  return format;
}

TOOLDECODE_INLINE JsonCall JsonCall::llama() {
  JsonCall format{"<|python_tag|>", "", "", "parameters", "; ", false, true};
  format.call_type = "function";
  return format;
}

TOOLDECODE_INLINE JsonCall JsonCall::mistral() {
  return {"[TOOL_CALLS]", "", " ", "arguments", ", ", true, false, "id"};
}

TOOLDECODE_INLINE JsonCall JsonCall::granite() {
  return {"<|tool_call|>", "", "", "arguments", ", ", true};
}

TOOLDECODE_INLINE JsonCall JsonCall::nemotron() {
  return {"<TOOLCALL>", "</TOOLCALL>", "", "arguments", ", ", true};
}

TOOLDECODE_INLINE JsonCall JsonCall::apriel() {
  return {"<tool_calls>", "</tool_calls>", "", "arguments", ", ", true};
}

TOOLDECODE_INLINE JsonCall JsonCall::phi_4_mini() {
  return {"<|tool_call|>", "<|/tool_call|>", "", "arguments", ", ", true};
}

TOOLDECODE_INLINE JsonCall JsonCall::firefunction() {
  return {"functools[", "]", "", "arguments", ", "};
}

TOOLDECODE_INLINE JsonCall JsonCall::gigachat_3_1() {
  return {"<|function_call|>", "", ""};
}

TOOLDECODE_INLINE JsonCall JsonCall::gigachat_3() {
  JsonCall format{"function call<|role_sep|>", "", "\n"};
  format.before_end = "";
  return format;
}

TOOLDECODE_INLINE JsonCall JsonCall::internlm() {
  JsonCall format{"<|action_start|><|plugin|>", "<|action_end|>", "\n", "parameters"};
  format.before_end = "";
  return format;
}

TOOLDECODE_INLINE JsonCall JsonCall::apertus() {
  JsonCall format{"<|tools_prefix|>", "<|tools_suffix|>", "", "", ", ", true};
  format.name = "";
  return format;
}

TOOLDECODE_INLINE JsonCall JsonCall::command_r7b() {
  JsonCall format{"<|START_ACTION|>", "<|END_ACTION|>", "", "parameters", ",\n    ", true};
  format.name     = "tool_name";
  format.number   = "tool_call_id";
  format.open     = "[\n    ";
  format.close    = "\n]";
  format.response = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", ""};
  return format;
}

TOOLDECODE_INLINE JsonCall JsonCall::command_r_plus() {
  JsonCall format{"Action:\n```json", "\n```", "\n", "parameters", ",\n    ", true};
  format.name  = "tool_name";
  format.open  = "[\n    ";
  format.close = "\n]";
  return format;
}

TOOLDECODE_INLINE std::string_view JsonCall::trigger() const noexcept {
  if (!begin.empty()) return begin;
  return list ? "[" : "{";
}

TOOLDECODE_INLINE std::string JsonCall::write(std::span<const ToolCall> calls) const {
  std::string text;
  std::size_t written = 0;
  for (const ToolCall& call : calls) {
    text += text.empty() ? begin + separator + (list ? open : "")
            : between    ? *between
                         : separator + begin + separator;
    text += '{';
    if (!number.empty()) text += '"' + number + "\": \"" + std::to_string(written++) + "\", ";
    if (!name.empty()) text += '"' + name + "\": ";
    text::append_json_string(text, call.name);
    if (!name.empty()) text += ", \"" + arguments + '"';
    text += ": " +
            schema::escape_excluded(text::write_json(call.arguments),
                                    formats::closing_delimiters({end})) +
            '}';
    if (!between) text += before_last() + end;
  }
  if (between && !calls.empty()) text += (list ? close : "") + end;
  return text;
}

TOOLDECODE_INLINE std::vector<ToolCall> JsonCall::parse(std::string_view text,
                                                        const ToolSet& tools) const {
  std::vector<ToolCall> calls;
  text::ValueReader reader = formats::call_reader(text);
  const auto before_begin  = only_fences ? text : text.substr(0, text.find(begin));
  if (const auto fence = detail::find_fence(*this, before_begin, tools)) {
    reader.skip(fence->first);
    for (; !reader.at_end(); reader.skip_space()) {
      reader.expect(fence->second->begin);
      calls.push_back(parse_call(reader));
      reader.expect(formats::trimmed(fence->second->end));
    }
    return calls;
  }
  if (only_fences) return calls;
  if (begin.empty()) {
    reader.skip_space();
    if (!reader.rest().starts_with(trigger())) return calls;
  } else {
    const std::size_t start = formats::leading_space(text);
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
                                                              const ChoiceOptions& given) const {
  // Models choose the layout of calls in fences and between the usual delimiters. Where calls are
  // not allowed, text must not hold one.
  const bool may_be_text = !given.text_schema && (given.choice == ToolChoice::automatic ||
                                                  given.choice == ToolChoice::none);
  const bool has_fences  = may_be_text && !fences.empty();
  ChoiceOptions options  = given;
  if (has_fences) options.whitespace = std::max(given.whitespace, detail::fence_whitespace);
  const schema::Spellings text(grammar, text::ValueSyntax::json, options.whitespace);
  const NodeId space = text.space();
  // With whitespace 0, the separators of the delimiters replace optional white space.
  const bool exact = options.whitespace == 0;
  const NodeId gap = exact ? grammar.literal(separator) : space;
  const auto named = names(grammar, tools, chosen, options);
  if (only_fences && may_be_text) {
    std::vector<CallOpening> result;
    append_fences(result, grammar, tools, named, options);
    return result;
  }
  const NodeId body = grammar.sequence({space, before_name(grammar, options), grammar.trie(named)});
  const NodeId whole = grammar.sequence({grammar.literal("{"), body});
  // What the format writes, with optional white space around it.
  const auto spaced = [&](std::string_view written) {
    const NodeId as_it_is = formats::delimiter(grammar, written);
    if (exact || written.empty()) return as_it_is;
    return grammar.choice(
        {as_it_is,
         grammar.sequence({space, formats::delimiter(grammar, formats::trimmed(written)), space})});
  };
  NodeId before = gap;
  if (list) {
    const NodeId opened = spaced(open);
    before              = begin.empty() ? space : grammar.sequence({gap, opened});
  }
  const bool is_open = begin.empty() && !list;  // the trigger was the brace
  const NodeId first = is_open ? body : grammar.sequence({before, whole});
  if (options.open_ended) {
    const NodeId rest = grammar.lexeme(formats::any_text());
    return {{std::string(trigger()), grammar.sequence({first, rest}), only_at_start()}};
  }
  const NodeId last             = exact ? grammar.empty() : space;
  const text::Occurrences count = options.calls();
  if (!between) {
    const NodeId behind = exact ? grammar.literal(before_last()) : space;
    const NodeId call = grammar.sequence({before, whole, behind, formats::delimiter(grammar, end)});
    const NodeId next = grammar.sequence({gap, formats::delimiter(grammar, begin)});
    std::vector<CallOpening> result{{std::string(trigger()),
                                     grammar.sequence({grammar.repeat(call, count, next), last}),
                                     only_at_start()}};
    if (has_fences) append_fences(result, grammar, tools, named, options);
    return result;
  }
  const NodeId next   = spaced(*between);
  const NodeId closed = list ? spaced(close) : grammar.empty();
  const NodeId ended  = grammar.sequence({closed, spaced(end), last});
  const auto bare     = [&] {
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
    // Where text may stand too, a model of this format writes its calls bare more often than not.
    result.push_back(exact && options.choice != ToolChoice::automatic
                         ? CallOpening::barred(grammar, "{", true)
                         : CallOpening{"{", bare(), true});
  }
  return result;
}

TOOLDECODE_INLINE void JsonCall::append_fences(
    std::vector<CallOpening>& openings, Grammar& grammar, const ToolSet& tools,
    const std::vector<std::pair<std::string, NodeId>>& named, const ChoiceOptions& options) const {
  if (tools.empty()) return;
  const NodeId blank = grammar.lexeme(text::any_whitespace(), {1, 2});
  for (const formats::CallFence& fence : fences) {
    CallOpening opening = CallOpening::barred(grammar, fence.begin + '{', fence.begin.empty());
    for (const Tool& tool : tools) {
      std::string spelled;
      text::append_json_string(spelled, tool.name);
      for (std::string& beginning : detail::beginnings(*this, fence, spelled))
        opening.longer.push_back(std::move(beginning));
    }
    std::vector<std::pair<std::string, NodeId>> ways;
    for (const auto& [spelled, rest] : named) {
      const NodeId call = grammar.tagged(CallGrammar::tool_mode, rest);
      for (const std::string& beginning : detail::beginnings(*this, fence, spelled))
        ways.emplace_back(beginning.substr(opening.delimiter.size()), call);
    }
    if (!ways.empty()) {
      const NodeId call = grammar.sequence({grammar.trie(ways), grammar.literal(fence.end)});
      const NodeId next = grammar.sequence({blank, grammar.literal(opening.delimiter), call});
      opening.calls =
          grammar.sequence({call, grammar.repeat(next, options.further_calls(), grammar.empty()),
                            grammar.optional(blank)});
    }
    openings.push_back(std::move(opening));
  }
}

TOOLDECODE_INLINE std::vector<std::pair<std::string, NodeId>> JsonCall::names(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  std::vector<std::pair<std::string, NodeId>> result;
  result.reserve(chosen.size());
  const std::vector<std::string> ends = formats::closing_delimiters({end});
  const std::string quoted_key        = '"' + arguments + '"';
  for (const std::size_t i : chosen) {
    const Tool& tool    = tools[i];
    const auto argument = [&](Grammar& part) {
      SchemaCompiler compiler(
          part, tool.parameters,
          formats::parameter_options(tool, options, text::ValueSyntax::json, ends));
      const NodeId value = part.tagged(formats::mark::arguments,
                                       compiler.value(tool.parameters, tool.parameters_pointer));
      NodeId id          = part.empty();
      if (!call_id.empty() && options.whitespace != 0) {
        id = part.optional(part.sequence(
            {compiler.whitespace(), compiler.comma(), part.literal('"' + call_id + '"'),
             compiler.colon(), part.literal("\""), formats::call_id(part), part.literal("\"")}));
      }
      const NodeId key =
          name.empty() ? part.empty() : part.sequence({compiler.comma(), part.literal(quoted_key)});
      return part.sequence(
          {key, compiler.colon(), value, id, compiler.whitespace(), part.literal("}")});
    };
    std::string spelled;
    spelled.reserve(tool.name.size() + 2);
    text::append_json_string(spelled, tool.name);
    result.emplace_back(std::move(spelled), grammar.part(static_cast<std::uint32_t>(i), argument));
  }
  return result;
}

TOOLDECODE_INLINE NodeId JsonCall::before_name(Grammar& grammar,
                                               const ChoiceOptions& options) const {
  const schema::Spellings text(grammar, text::ValueSyntax::json, options.whitespace);
  NodeId counted = grammar.empty();
  if (!call_type.empty() && (options.whitespace != 0 || options.choice == ToolChoice::automatic)) {
    std::string spelled;
    text::append_json_string(spelled, call_type);
    counted = grammar.optional(grammar.sequence(
        {grammar.literal("\"type\""), text.colon(), grammar.literal(spelled), text.comma()}));
  }
  if (!number.empty()) {
    counted =
        grammar.sequence({grammar.literal('"' + number + '"'), text.colon(), grammar.literal("\""),
                          formats::call_number(grammar), grammar.literal("\""), text.comma()});
    if (options.whitespace != 0) counted = grammar.optional(counted);
  }
  if (name.empty()) return counted;
  return grammar.sequence({counted, grammar.literal('"' + name + '"'), text.colon()});
}

TOOLDECODE_INLINE ToolCall JsonCall::parse_call(text::ValueReader& reader) const {
  reader.skip_space();
  const std::size_t at = reader.position();
  auto object          = reader.value();
  for (const std::string& key : {call_id, number}) {
    if (!key.empty() && object.is_object() && object.contains(key) && object[key].is_string()) {
      object.erase(key);
    }
  }
  if (!call_type.empty() && object.is_object() && object.contains("type") &&
      object["type"] == call_type) {
    object.erase("type");
  }
  if (name.empty()) {
    const bool is_named = object.is_object() && object.size() == 1 && object.begin()->is_object();
    if (!is_named) reader.fail_at(at, "a call is an object of a name with arguments");
    reader.skip_space();
    std::string called(object.begin().key());
    return {std::move(called), std::move(*object.begin())};
  }
  const bool is_call = object.is_object() && object.size() == 2 && object.contains(name) &&
                       object[name].is_string() && object.contains(arguments) &&
                       object[arguments].is_object();
  if (!is_call) reader.fail_at(at, "a call is an object of a name and " + arguments);
  reader.skip_space();
  return {object[name].get<std::string>(), std::move(object[arguments])};
}

TOOLDECODE_INLINE void JsonCall::parse_all(text::ValueReader& reader,
                                           std::vector<ToolCall>& calls) const {
  const std::string_view ending = formats::trimmed(end);
  const auto is_over            = [&] {
    if (list) return reader.accept(formats::trimmed(close));
    return ending.empty() ? reader.at_end() : reader.rest().starts_with(ending);
  };
  if (!bare_at_start || !reader.rest().starts_with('{')) reader.expect(begin);
  reader.skip_space();
  if (list) reader.expect(formats::trimmed(open));
  do {
    if (!calls.empty()) reader.expect(formats::trimmed(*between));
    calls.push_back(parse_call(reader));
  } while (!is_over());
  reader.skip_space();
  reader.expect(ending);
  formats::expect_end(reader);
}

TOOLDECODE_INLINE const std::string& JsonCall::before_last() const {
  return before_end ? *before_end : separator;
}

}  // namespace tooldecode
