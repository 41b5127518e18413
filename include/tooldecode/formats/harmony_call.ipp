#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode::detail::harmony {

inline constexpr const char* delimiters[] = {"<|start|>",   "<|channel|>", "<|constrain|>",
                                             "<|message|>", "<|end|>",     "<|call|>",
                                             "<|return|>"};

TOOLDECODE_INLINE std::string_view word(text::ValueReader& reader) {
  const std::string_view rest = reader.rest();
  const std::size_t length =
      std::min({rest.find_first_of(" \t\r\n\v\f"), rest.find("<|"), rest.size()});
  reader.skip(length);
  return rest.substr(0, length);
}

TOOLDECODE_INLINE bool is_at_delimiter(const text::ValueReader& reader) {
  return std::any_of(std::begin(delimiters), std::end(delimiters),
                     [&](const char* delimiter) { return reader.rest().starts_with(delimiter); });
}

TOOLDECODE_INLINE void refuse(const Tool& tool) {
  const bool has_space = tool.name.find_first_of(" \t\r\n\v\f") != std::string::npos;
  if (has_space) formats::refuse_tool(tool, "white space ends it");
  const std::string_view delimiter = "<|";
  formats::refuse_tool(tool,
                       formats::why_not_carried(tool.name, std::span(&delimiter, 1), delimiter));
}

TOOLDECODE_INLINE NodeId any_channel(Grammar& grammar) {
  return grammar.sequence(
      {formats::delimiter(grammar, "<|channel|>"),
       grammar.choice({grammar.literal("commentary"), grammar.literal("analysis"),
                       grammar.literal("final")})});
}

TOOLDECODE_INLINE NodeId optional_space(Grammar& grammar) {
  return grammar.optional(grammar.literal(" "));
}

// The end of a header: an optional type, then the message delimiter.
TOOLDECODE_INLINE NodeId type_of(Grammar& grammar, NodeId type) {
  const NodeId space     = grammar.literal(" ");
  const NodeId delimiter = formats::delimiter(grammar, "<|constrain|>");
  const NodeId named =
      grammar.choice({grammar.sequence({space, type}),
                      grammar.sequence({grammar.optional(space), delimiter, type})});
  return grammar.sequence({grammar.optional(named), optional_space(grammar),
                           formats::delimiter(grammar, "<|message|>")});
}

TOOLDECODE_INLINE NodeId type_of_json(Grammar& grammar) {
  return type_of(grammar, grammar.literal("json"));
}

TOOLDECODE_INLINE NodeId any_type(Grammar& grammar) {
  static const text::DfaPointer letters = [] {
    std::vector<text::Dfa::Row> rows(2);
    for (unsigned b = 'a'; b <= 'z'; ++b) rows[0].next[b] = rows[1].next[b] = 1;
    rows[0].boundary = rows[1].boundary = rows[1].accepting = true;
    return std::make_shared<const text::Dfa>(std::move(rows));
  }();
  return type_of(grammar, grammar.lexeme(letters, {1, 16}));
}

// Reads up to a message and returns its recipient.
TOOLDECODE_INLINE std::optional<std::string_view> parse_header(text::ValueReader& reader,
                                                               bool is_first) {
  if (reader.accept("<|start|>")) {
    reader.expect("assistant");
  } else if (is_first) {
    // This is text, unless a delimiter of a header follows.
    std::size_t delimiter = reader.rest().find("<|");
    while (delimiter != std::string_view::npos) {
      const std::string_view rest = reader.rest().substr(delimiter);
      if (rest.starts_with("<|channel|>") || rest.starts_with("<|constrain|>") ||
          rest.starts_with("<|message|>")) {
        break;
      }
      const bool is_other = rest.starts_with("<|end|>") || rest.starts_with("<|call|>") ||
                            rest.starts_with("<|start|>") || rest.starts_with("<|return|>");
      delimiter = is_other ? std::string_view::npos : reader.rest().find("<|", delimiter + 2);
    }
    if (delimiter == std::string_view::npos) return std::nullopt;
  }
  std::optional<std::string_view> recipient;
  bool has_channel = false;
  while (!reader.accept("<|message|>")) {
    reader.skip_space();
    if (reader.accept("<|message|>")) break;
    if (!has_channel && reader.accept("<|channel|>")) {
      has_channel = true;
      static_cast<void>(word(reader));
    } else if (!recipient && reader.accept("to=")) {
      recipient = word(reader);
    } else if (reader.accept("<|constrain|>")) {
      static_cast<void>(word(reader));
    } else if (!has_channel || reader.rest().starts_with("to=") || word(reader).empty()) {
      reader.fail(
          "expected the header of a message");  // the word may be a type without its delimiter
    }
  }
  return recipient;
}

}  // namespace tooldecode::detail::harmony

namespace tooldecode {

TOOLDECODE_INLINE formats::ReasoningDelimiters HarmonyCall::analysis() {
  return {"<|channel|>analysis<|message|>", "<|end|><|start|>assistant"};
}

TOOLDECODE_INLINE std::string_view HarmonyCall::trigger() noexcept {
  return "<|channel|>commentary to=functions.";
}

TOOLDECODE_INLINE std::vector<std::string> HarmonyCall::never_in_text() {
  return {"<|channel|>", "<|message|>", "<|constrain|>", "<|call|>"};
}

TOOLDECODE_INLINE std::string HarmonyCall::write(std::span<const ToolCall> calls) {
  std::string text;
  for (const ToolCall& call : calls) {
    if (!text.empty()) text += "<|start|>assistant";
    ((text += trigger()) += call.name) += " <|constrain|>json<|message|>";
    text += text::write_json(call.arguments) + "<|call|>";
  }
  return text;
}

TOOLDECODE_INLINE std::vector<ToolCall> HarmonyCall::parse(std::string_view text,
                                                           const ToolSet& /*tools*/) {
  std::vector<ToolCall> calls;
  text::ValueReader reader = formats::call_reader(text);
  const std::size_t space  = formats::leading_space(text);
  if (text.substr(space).starts_with("<|start|>")) reader.skip(space);
  for (bool is_first = true; !reader.at_end(); is_first = false) {
    const auto recipient = detail::harmony::parse_header(reader, is_first);
    if (recipient && recipient->starts_with("functions.")) {
      const std::string_view name = recipient->substr(std::string_view("functions.").size());
      if (!formats::is_name(name)) reader.fail("expected the name of a tool before the message");
      calls.push_back({std::string(name), formats::read_arguments(reader)});
    } else {
      reader.skip(std::min(reader.rest().find("<|"), reader.rest().size()));
      while (!reader.at_end() && !detail::harmony::is_at_delimiter(reader)) {
        reader.skip(2);
        reader.skip(std::min(reader.rest().find("<|"), reader.rest().size()));
      }
    }
    if (reader.at_end()) break;
    if (!reader.accept("<|end|>") && !reader.accept("<|call|>")) {
      reader.fail("expected the end of a message");
    }
    reader.skip_space();
    if (!reader.at_end() && !reader.rest().starts_with("<|start|>")) {
      reader.fail("expected another message, or the end of the text");
    }
  }
  return calls;
}

TOOLDECODE_INLINE std::vector<CallOpening> HarmonyCall::openings(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) {
  const bool exact      = options.whitespace == 0;
  const NodeId constant = formats::delimiter(grammar, " <|constrain|>json<|message|>");
  const NodeId type     = exact ? constant : detail::harmony::type_of_json(grammar);
  const NodeId channel  = exact ? formats::delimiter(grammar, "<|channel|>commentary")
                                : detail::harmony::any_channel(grammar);
  // ` to=` follows the role or the channel.
  const NodeId after_role =
      grammar.sequence({detail::harmony::optional_space(grammar), channel, type});
  std::vector<std::pair<std::string, NodeId>> early, late;
  for (const std::size_t i : chosen) {
    const Tool& tool = tools[i];
    detail::harmony::refuse(tool);
    const NodeId arguments = grammar.part(static_cast<std::uint32_t>(i), [&](Grammar& part) {
      SchemaCompiler compiler(part, tool.parameters, formats::parameter_options(tool, options));
      return part.sequence({compiler.whitespace(),
                            part.tagged(formats::mark::arguments,
                                        compiler.value(tool.parameters, tool.parameters_pointer)),
                            compiler.whitespace()});
    });
    late.emplace_back(tool.name, grammar.sequence({type, arguments}));
    if (!exact) early.emplace_back(tool.name, grammar.sequence({after_role, arguments}));
  }
  const NodeId to          = grammar.literal(" to=functions.");
  const NodeId before_late = grammar.sequence({channel, to});
  const NodeId late_name   = grammar.trie(late);
  const NodeId early_name  = grammar.trie(early);
  if (options.open_ended) {
    const NodeId rest = grammar.lexeme(formats::any_text());
    return {{"", grammar.sequence({before_late, late_name, rest})}};
  }
  const NodeId close = formats::delimiter(grammar, "<|call|>");
  const NodeId space = exact ? grammar.empty() : grammar.lexeme(text::any_whitespace(), {0, 2});
  const NodeId last  = grammar.sequence({grammar.optional(close), space});
  NodeId more        = grammar.empty();
  if (options.parallel) {
    const NodeId call = grammar.choice(
        {grammar.sequence({before_late, late_name}), grammar.sequence({to, early_name})});
    const NodeId role = formats::delimiter(grammar, "<|start|>assistant");
    more = grammar.repeat(grammar.sequence({close, role, call}), options.further_calls(),
                          grammar.empty());
  }
  // Before ` to=` the header may also belong to a text, so calls are marked after it.
  const auto known = [&](NodeId name) {
    return grammar.tagged(CallGrammar::tool_mode, grammar.sequence({name, more, last}));
  };
  return {{"", grammar.choice({grammar.sequence({before_late, known(late_name)}),
                               grammar.sequence({to, known(early_name)})})}};
}

TOOLDECODE_INLINE AnswerTexts HarmonyCall::texts(Grammar& grammar, formats::FreeText beside) {
  const auto own = text_of_delimiters();
  beside.without.insert(beside.without.end(), own.begin(), own.end());
  const NodeId plain =
      grammar.tagged(formats::mark::text, grammar.lexeme(formats::free_text(beside)));
  beside.not_first.clear();
  const NodeId any     = grammar.lexeme(formats::free_text(beside));
  const NodeId content = grammar.tagged(formats::mark::text, any);
  const NodeId role    = formats::delimiter(grammar, "<|start|>assistant");
  const NodeId end     = formats::delimiter(grammar, "<|end|>");
  const NodeId channel = formats::delimiter(grammar, "<|channel|>");
  const NodeId type    = detail::harmony::any_type(grammar);
  const NodeId shown   = grammar.choice({grammar.literal("commentary"), grammar.literal("final")});
  const NodeId message =
      grammar.choice({grammar.sequence({channel, shown, type, content}),
                      grammar.sequence({channel, grammar.literal("analysis"), type,
                                        grammar.tagged(formats::mark::reasoning, any)})});
  const NodeId start =
      grammar.sequence({grammar.lexeme(text::any_whitespace(), {0, 2}), grammar.optional(role)});
  const NodeId first  = grammar.choice({plain, grammar.sequence({start, message})});
  const NodeId next   = grammar.repeat(grammar.sequence({end, role, message}), {}, grammar.empty());
  const NodeId silent = grammar.sequence({first, next, grammar.optional(end)});
  return {silent, grammar.choice({start, grammar.sequence({first, next, end, role})})};
}

TOOLDECODE_INLINE std::vector<std::string> HarmonyCall::text_of_delimiters() {
  return {std::begin(detail::harmony::delimiters), std::end(detail::harmony::delimiters)};
}

}  // namespace tooldecode
