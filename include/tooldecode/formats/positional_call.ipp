#pragma once

#include <algorithm>
#include <cstdint>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/listed_arguments.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode {

namespace detail {

// True where an object of the form may have exactly these keys.
TOOLDECODE_INLINE bool is_whole(const schema::ObjectForm& object,
                                std::span<const std::string> keys) {
  const auto has = [&](const std::string& key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  if (keys.size() < object.count.min || keys.size() > object.count.max) return false;
  for (const schema::ObjectForm::Member& member : object.members) {
    if (member.required && !has(member.name)) return false;
  }
  for (const auto& [name, needed] : object.dependent) {
    if (has(name) && !has(needed)) return false;
  }
  for (const schema::ObjectForm::Together& together : object.together) {
    std::uint32_t set = 0;
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      set |= std::uint32_t{has(together.keys[i])} << i;
    }
    if (!together.allows(set)) return false;
  }
  return true;
}

}  // namespace detail

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
  text::ValueReader reader = formats::call_reader(text);
  const Tool* tool         = nullptr;
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
  formats::expect_end(reader);
  return {std::move(call)};
}

TOOLDECODE_INLINE std::pair<std::string, JsonValue> PositionalCall::read_argument(
    const Tool& tool, std::size_t given, std::string_view /*before*/, std::string_view text) {
  text::ValueReader value = formats::call_reader(text);
  const auto names        = argument_names(tool);
  if (given >= names.size()) value.fail("more arguments than documented parameters");
  return {names[given], value.value()};
}

TOOLDECODE_INLINE std::vector<CallOpening> PositionalCall::openings(
    Grammar& grammar, const ToolSet& tools, std::span<const std::size_t> chosen,
    const ChoiceOptions& options) const {
  std::vector<std::pair<std::string, NodeId>> names;
  for (const std::size_t i : chosen) {
    const std::string_view delimiter = begin;
    formats::refuse_tool(tools[i],
                         formats::why_not_carried(tools[i].name, std::span(&delimiter, 1), middle));
    const auto call = [&](Grammar& part) {
      const SchemaOptions written = formats::parameter_options(tools[i], options);
      schema::Reader reader(tools[i].parameters, written.rules);
      schema::Spellings text(part, written.syntax, written.whitespace);
      schema::GrammarBuilder values(part, reader, text, written.documented_order,
                                    written.numbers.as_written());
      const NodeId list = part.sequence(
          {text.space(), arguments(part, text, tools[i], options, reader, values), text.space()});
      return options.open_ended ? part.sequence({list, part.lexeme(formats::any_text())})
                                : part.sequence({list, formats::delimiter(part, end)});
    };
    names.emplace_back(tools[i].name + middle, grammar.part(static_cast<std::uint32_t>(i), call));
  }
  CallOpening opening{begin, grammar.trie(names)};
  if (!is_delimiter) {
    for (const Tool& tool : tools) opening.longer.push_back(begin + tool.name + middle);
  }
  return {std::move(opening)};
}

TOOLDECODE_INLINE NodeId PositionalCall::arguments(Grammar& grammar, const schema::Spellings& text,
                                                   const Tool& tool, const ChoiceOptions& options,
                                                   schema::Reader& reader,
                                                   schema::GrammarBuilder& values) {
  const BuildBudget budget(options.limits);
  const NodeId first(static_cast<std::uint32_t>(grammar.size()));
  const auto names    = argument_names(tool);
  const auto& leading = options.leading_keys;
  for (std::size_t i = 0; i < leading.size(); ++i) {
    if (i < names.size() && names[i] == leading[i]) continue;
    throw Error(Errc::invalid_option, leading[i],
                "must be the next argument: those without keys keep their order");
  }
  try {
    const formats::ListedArguments listed(tool, reader);
    std::vector<NodeId> choices;
    for (const schema::ObjectForm& object : listed.objects()) {
      // From the last argument to the first: `tail` is what may follow the arguments before it.
      NodeId tail = grammar.nothing();
      for (std::size_t i = names.size() + 1; i-- > 0;) {
        BuildBudget::spend(steps_of(object));
        const bool may_end =
            i >= leading.size() && detail::is_whole(object, std::span(names).first(i));
        const NodeId here = may_end ? grammar.optional(tail) : tail;
        if (i == 0) {
          choices.push_back(here);
          break;
        }
        const NodeId value = grammar.tagged(
            formats::mark::argument,
            grammar.tagged(argument_tag + static_cast<std::uint32_t>(i - 1),
                           values.value(reader.forms.value_of(object, names[i - 1]))));
        tail = grammar.sequence({i == 1 ? grammar.empty() : text.comma(), value, here});
      }
    }
    const NodeId all = choices.size() == 1 ? choices[0] : grammar.choice(std::move(choices));
    if (grammar.is_satisfiable(all, first)) return all;
    listed.refuse(
        "no arguments conform of which only the last are left out: list those that are needed first");
  } catch (const Error& error) {
    throw error.under(tool.parameters_pointer);
  }
}

}  // namespace tooldecode
