#pragma once

#include <algorithm>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_call_parts.ipp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/enforceable_tools.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ToolCallFSM ToolCallFSM::build(VocabularyIndex index,
                                                 std::shared_ptr<const ToolSet> tools,
                                                 formats::AnyFormat format,
                                                 const ChoiceOptions& options) {
  const auto make = [&](const std::shared_ptr<const ToolSet>& enforced) {
    return ToolCallFSM(index, enforced, format, options,
                       Parts{build_call_grammar(format, *enforced, options)});
  };
  return formats::build_enforceable(format, tools, options, make);
}

TOOLDECODE_INLINE ToolCallFSM::ToolCallFSM(VocabularyIndex index,
                                           std::shared_ptr<const ToolSet> tools,
                                           formats::AnyFormat format, const ChoiceOptions& options,
                                           Parts parts)
    : constraint_(std::move(index), std::move(parts.states), parts.grammar.grammar) {
  if (parts.grammar.openings) require_told_apart(*parts.grammar.openings, options);
  ChoiceOptions built    = options;
  built.limits.cancelled = nullptr;  // the caller's
  shared_                = std::make_shared<const Shared>(
      Shared{std::move(tools),
             std::move(parts.numbers),
                            {std::move(parts.grammar.openings), std::move(parts.grammar.text_ends),
                             std::move(parts.grammar.turn_ends), std::move(parts.grammar.reasoning_ends)},
             std::move(format),
             std::move(built)});
}

TOOLDECODE_INLINE const ToolSet& ToolCallFSM::tools() const noexcept {
  return *shared_->tools;
}

TOOLDECODE_INLINE ToolCallFSM::Mode ToolCallFSM::mode(State state) const {
  if (is_finished(state)) return Mode::text;
  const auto tags       = constraint_.automaton().tags(constraint_.automaton_state(state));
  const bool is_in_call = std::find(tags.begin(), tags.end(), CallGrammar::tool_mode) != tags.end();
  return is_in_call ? Mode::tool : Mode::text;
}

TOOLDECODE_INLINE std::optional<std::size_t> ToolCallFSM::find_tool(State state) const {
  if (is_finished(state)) return std::nullopt;
  return tool_of(constraint_.automaton().tags(constraint_.automaton_state(state)));
}

TOOLDECODE_INLINE bool ToolCallFSM::is_name_open(State state) const {
  const auto tool = find_tool(state);
  if (!tool) return false;
  const grammar::Automaton& automaton = constraint_.automaton();
  for (const grammar::StackFrame& position :
       automaton.positions(constraint_.automaton_state(state))) {
    if (tool_of(automaton.tags_at(position)) != tool) return true;
  }
  return false;
}

TOOLDECODE_INLINE std::optional<std::size_t> ToolCallFSM::tool_of(
    std::span<const std::uint32_t> marks) const {
  for (const std::uint32_t tag : marks) {
    if (tag >= argument_tag) continue;
    const auto& numbers = shared_->numbers;
    if (numbers.empty()) return tag;
    const auto tool =
        std::lower_bound(numbers.begin(), numbers.end(), std::pair(tag, std::size_t{0}));
    if (tool != numbers.end() && tool->first == tag) return tool->second;
  }
  return std::nullopt;
}

TOOLDECODE_INLINE std::optional<std::size_t> ToolCallFSM::find_argument(State state) const {
  if (is_finished(state)) return std::nullopt;
  const grammar::Automaton& automaton = constraint_.automaton();
  for (const grammar::StackFrame& position :
       automaton.positions(constraint_.automaton_state(state))) {
    std::optional<std::size_t> outermost;
    for (const std::uint32_t tag : automaton.tags_at(position)) {
      if (tag >= argument_tag && tag < formats::mark::first) outermost = tag - argument_tag;
    }
    if (outermost) return outermost;
  }
  return std::nullopt;
}

TOOLDECODE_INLINE ToolCallFSM ToolCallFSM::single_call(std::size_t tool,
                                                       std::vector<std::string> leading_keys,
                                                       bool open_ended) const {
  return build(vocabulary_index(), shared_->tools, shared_->format,
               {.choice       = ToolChoice::named,
                .name         = tools()[tool].name,
                .whitespace   = 0,
                .leading_keys = std::move(leading_keys),
                .open_ended   = open_ended});
}

TOOLDECODE_INLINE std::vector<TokenId> ToolCallFSM::structural_tokens() const {
  const constraint::JumpForwardText text{vocabulary_index().trie()};
  std::vector<TokenId> tokens;
  for (const char byte : std::string_view("\"'[]{}(),:-.0123456789")) {
    const auto single = text.encode(std::string_view(&byte, 1));
    tokens.insert(tokens.end(), single.begin(), single.end());
  }
  for (const Tool& tool : tools()) {
    ToolCall call{.name = tool.name};
    for (const std::string& key : argument_names(tool)) call.arguments[key] = nullptr;
    const auto more = text.encode(write(std::span(&call, 1)));
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

TOOLDECODE_INLINE std::vector<ToolCall> ToolCallFSM::parse(std::string_view text) const {
  std::string answer;
  const Shared::Reading& reading = shared_->reading;
  if (const auto& reasoning = shared_->options.reasoning) {
    const auto ends = shared_->format.ends_reasoning();
    answer          = formats::without_reasoning(text, *reasoning, ends);
    text            = answer;
  }
  if (!reading.may_have_calls(text)) return {};
  return shared_->format.parse(text, tools());
}

TOOLDECODE_INLINE std::vector<ToolCall> ToolCallFSM::parse(std::span<const TokenId> tokens) const {
  return parse(vocabulary().answer_text(tokens));
}

TOOLDECODE_INLINE std::string ToolCallFSM::write(std::span<const ToolCall> calls) const {
  return shared_->format.write(calls, tools());
}

TOOLDECODE_INLINE JsonValue ToolCallFSM::parse_value(std::string_view text) const {
  return formats::call_reader(text, shared_->format.member(0).language()).only_value();
}

TOOLDECODE_INLINE void ToolCallFSM::require_told_apart(const std::vector<std::string>& openings,
                                                       const ChoiceOptions& options) const {
  if (openings.empty()) return;
  const Constraint values(
      vocabulary_index(),
      Grammar::json_schema(*options.text_schema, detail::text_schema_options(options)));
  for (const std::string& opening : openings) {
    if (!values.advance_bytes(values.initial(), opening)) continue;
    throw Error(Errc::invalid_option, std::string(detail::text_schema_place),
                "no value must begin with " + opening + ", which opens calls in this format");
  }
}

TOOLDECODE_INLINE std::size_t ToolCallFSM::vocabulary_size() const noexcept {
  return constraint_.vocabulary_size();
}

TOOLDECODE_INLINE const VocabularyIndex& ToolCallFSM::vocabulary_index() const noexcept {
  return constraint_.vocabulary_index();
}

TOOLDECODE_INLINE std::optional<ToolCallFSM::State> ToolCallFSM::advance_bytes(
    State state, std::string_view bytes) const {
  return constraint_.advance_bytes(state, bytes);
}

}  // namespace tooldecode
