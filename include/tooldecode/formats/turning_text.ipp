#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_tokens.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/turning_text.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE std::vector<TextTurn> turns_into(Grammar& grammar, std::string_view trigger,
                                                   std::string_view delimiter, NodeId after) {
  static constexpr std::size_t max_delimiters = 6;  // each doubles the spellings
  std::size_t covered = 0, delimiters = 0;
  while (covered < trigger.size()) {
    const std::size_t length = delimiter_length(delimiter.substr(covered));
    delimiters += length != 0;
    covered += std::max<std::size_t>(length, 1);
  }
  if (delimiters > max_delimiters) {
    throw Error(Errc::limit_exceeded, "", "a trigger of too many delimiters");
  }
  const auto rest = [&](std::size_t from) {
    return grammar.sequence({formats::delimiter(grammar, delimiter.substr(from)), after});
  };
  std::vector<TextTurn> turns{{std::string(trigger), rest(trigger.size())}};
  const auto spellings = delimiter_spellings(delimiter.substr(0, covered));
  if (spellings.size() == 1) return turns;
  const NodeId behind = rest(covered);
  for (std::size_t i = 1; i < spellings.size(); ++i) turns.push_back({spellings[i], behind});
  return turns;
}

TOOLDECODE_INLINE NodeId turning_text(Grammar& grammar, std::span<const TextTurn> turns,
                                      const std::vector<std::string>& without, TurnCount count) {
  const auto holds = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  std::map<std::string, std::vector<NodeId>> after;
  for (const TextTurn& turn : turns) {
    const bool is_left_out = std::any_of(without.begin(), without.end(),
                                         [&](const auto& one) { return holds(turn.trigger, one); });
    if (!is_left_out) after[turn.trigger].push_back(turn.then);
  }
  FreeText text{.without = without};
  for (const auto& [trigger, then] : after) {
    if (holds(trigger, {control_open})) continue;
    for (const auto& [other, unused] : after) {
      if (holds(trigger.substr(0, trigger.size() - 1), other)) {
        throw Error(Errc::unsupported_keyword, "",
                    "the trigger \"" + trigger + "\" holds the trigger \"" + other + '"');
      }
    }
    text.without.push_back(trigger);
  }
  const NodeId end = grammar.lexeme(free_text(text));
  std::vector<NodeId> ways;
  for (auto& [trigger, then] : after) {
    FreeText before = text;
    std::erase(before.without, trigger);
    before.until = {trigger};
    ways.push_back(
        grammar.sequence({grammar.lexeme(free_text(before)), grammar.choice(std::move(then))}));
  }
  if (count == TurnCount::once) {
    ways.push_back(end);
    return grammar.choice(std::move(ways));
  }
  if (ways.empty()) return end;
  return grammar.sequence(
      {grammar.repeat(grammar.choice(std::move(ways)), {}, grammar.empty()), end});
}

TOOLDECODE_INLINE NodeId turning_tokens(Grammar& grammar, const std::vector<std::string>& triggers,
                                        std::vector<std::string> without, NodeId turn,
                                        TurnCount count) {
  without.insert(without.end(), triggers.begin(), triggers.end());
  const NodeId text = grammar.lexeme(ebnf::any_tokens(without));
  if (count == TurnCount::once) return grammar.sequence({text, grammar.optional(turn)});
  return grammar.sequence(
      {grammar.repeat(grammar.sequence({text, turn}), {}, grammar.empty()), text});
}

}  // namespace tooldecode::formats
