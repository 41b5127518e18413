#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/constraint/explain_refusal.hpp>
#include <tooldecode/constraint/forbidding_keywords.hpp>
#include <tooldecode/constraint/tool_call_parts.ipp>
#include <tooldecode/constraint/value_place.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

namespace refusal {

/// A character of a line as a terminal shows it.
struct Cell {
  std::string_view shown;
  std::size_t begin, bytes;  // in the text
  std::size_t columns;
};

/// How many columns of a terminal a character takes.
inline std::size_t columns_of(std::uint32_t point) {
  using Range = std::pair<std::uint32_t, std::uint32_t>;
  static constexpr Range none[]{{0x300, 0x36F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}};
  static constexpr Range two[]{{0x1100, 0x115F},  {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                               {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                               {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF},
                               {0x20000, 0x3FFFD}};
  const auto holds = [&](const Range& range) {
    return range.first <= point && point <= range.second;
  };
  if (std::any_of(std::begin(none), std::end(none), holds)) return 0;
  return std::any_of(std::begin(two), std::end(two), holds) ? 2 : 1;
}

inline std::vector<Cell> cells_of(std::string_view text, std::size_t begin, std::size_t end) {
  std::vector<Cell> cells;
  while (begin < end) {
    const auto point        = text::find_code_point(text, begin);
    const std::size_t bytes = point ? point->bytes : 1;
    const bool is_control   = point && (point->value < 0x20 || point->value == 0x7F);
    cells.push_back({is_control ? " "
                     : point    ? text.substr(begin, bytes)
                                : "\xEF\xBF\xBD",
                     begin, bytes, is_control || !point ? 1 : columns_of(point->value)});
    begin += bytes;
  }
  return cells;
}

/// The first byte of the character that a byte belongs to.
inline std::size_t character_at(std::string_view text, std::size_t at) {
  for (std::size_t back = 0; back < 4 && back <= at; ++back) {
    const auto point = text::find_code_point(text, at - back);
    if (point && back < point->bytes) return at - back;
  }
  return at;
}

/// Sets line, column, excerpt and caret.
inline void show_place(RefusedText& refused, std::string_view text, std::size_t at) {
  static constexpr std::size_t width = 76;         // columns
  static constexpr std::size_t after = 24;         // columns that are kept for what follows
  static constexpr std::size_t most  = 4 * width;  // bytes on either side that may be shown
  const LinePlace line               = LinePlace::of(text, at);
  refused.line                       = line.line;
  refused.column                     = line.column;
  std::size_t begin                  = std::max(line.begin, at - std::min(at, most));
  while (begin < at && begin > line.begin && (text[begin] & 0xC0) == 0x80) ++begin;
  const std::size_t end = std::min({text.find('\n', at), at + most, text.size()});
  const auto cells      = cells_of(text, begin, std::max(end, at));
  const auto place      = std::find_if(cells.begin(), cells.end(),
                                       [&](const Cell& cell) { return cell.begin + cell.bytes > at; });
  std::size_t rest      = 0;
  for (auto cell = place; cell != cells.end() && rest < after; ++cell) rest += cell->columns;
  const std::size_t before = width - std::min(rest, after);
  auto first               = place;
  std::size_t columns      = 0;
  while (first != cells.begin() && columns + std::prev(first)->columns <= before) {
    columns += (--first)->columns;
  }
  if (first != cells.begin() || begin > line.begin) refused.excerpt = "...";
  refused.caret = refused.excerpt.size() + columns;
  auto last     = first;
  for (columns = 0; last != cells.end() && columns + last->columns <= width; ++last) {
    refused.excerpt += last->shown;
    columns += last->columns;
  }
  const bool is_cut = last != cells.end() || (end < text.size() && text[end] != '\n');
  if (is_cut) refused.excerpt += "...";
}

inline std::string reason_at(std::string_view text, std::size_t at) {
  if (at == text.size()) return "the text cannot end here";
  const auto point = text::find_code_point(text, at);
  if (point && text[at] == '"') return "'\"' cannot follow";
  if (point) return JsonValue(text.substr(at, point->bytes)).text() + " cannot follow";
  static constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte                          = static_cast<unsigned char>(text[at]);
  return std::string("the byte 0x") + digits[byte / 16] + digits[byte % 16] + " cannot follow";
}

template <class C>
RefusedText describe(const C& constraint, std::string_view text, const Constraint::Refusal& place) {
  RefusedText refused{.at = place.at, .too_short = place.too_short};
  const std::size_t character = character_at(text, place.at);
  show_place(refused, text, character);
  refused.reason   = reason_at(text, character);
  const auto state = constraint.advance_bytes(constraint.initial(), text.substr(0, place.at));
  refused.expected = explain(constraint, *state);
  return refused;
}

/// The value that a JSON text stops in. A number that could end has ended if the byte does not
/// belong to it.
inline constraint::ValuePlace value_place(const Constraint& constraint, std::string_view text,
                                          std::size_t at) {
  static constexpr std::string_view ends = ",]}";
  std::string before(text.substr(0, at));
  const auto state    = constraint.advance_bytes(constraint.initial(), before);
  const auto can_come = [&](char end) {
    return constraint.advance_bytes(*state, std::string_view(&end, 1)).has_value();
  };
  const bool is_end = at < text.size() && ends.find(text[at]) != std::string_view::npos;
  if (is_end && std::any_of(ends.begin(), ends.end(), can_come)) before += ' ';
  return constraint::ValuePlace::after(before);
}

using Reach = constraint::ForbiddingKeywords::Reach;

/// How far a text gets in a grammar, relative to a place.
inline Reach reach_of(const Grammar& grammar, std::string_view text, std::size_t at) {
  const grammar::Automaton automaton(grammar);
  auto state = automaton.initial();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto next = text[i] == control_open
                          ? std::nullopt
                          : automaton.step(state, static_cast<std::uint8_t>(text[i]));
    if (!next) return i < at ? Reach::less : Reach::same;
    state = *next;
    if (i == at) return Reach::more;
  }
  return automaton.is_accepting(state) ? Reach::more : Reach::same;
}

/// The judge of what `make` builds of a schema; a schema that cannot be built gets nowhere.
template <class Make>
constraint::ForbiddingKeywords::Judge judge(std::string_view text, std::size_t at, Make make) {
  return [text, at, make = std::move(make)](const JsonValue& schema) {
    try {
      return reach_of(make(schema), text, at);
    } catch (const Error& error) {
      if (error.code() == Errc::limit_exceeded || error.code() == Errc::cancelled) throw;
      return Reach::less;
    }
  };
}

inline std::string cut(std::string text) {
  static constexpr std::size_t longest = 60;
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while ((text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

/// Adds the keywords that forbid the place; whether there are any.
inline bool add_keywords(RefusedText& refused, const JsonValue& schema, const std::string& root,
                         const constraint::ForbiddingKeywords::Judge& judge) {
  for (const std::string& pointer : constraint::ForbiddingKeywords(schema, judge).find()) {
    refused.rules.push_back({root + pointer, cut(schema.find_at(pointer)->text())});
  }
  return !refused.rules.empty();
}

}  // namespace refusal

TOOLDECODE_INLINE std::string RefusedText::text() const {
  std::string lines = "line " + std::to_string(line) + ", column " + std::to_string(column);
  if (!value_at.empty()) lines += ", in " + value_at;
  lines +=
      ": " + reason + '\n' + excerpt + '\n' + std::string(caret, ' ') + "^\nexpected: " + expected;
  for (const Rule& rule : rules) lines += '\n' + rule.pointer + ": " + rule.value;
  return lines;
}

TOOLDECODE_INLINE JsonValue RefusedText::json() const {
  JsonValue listed = JsonValue::array();
  for (const Rule& rule : rules) {
    listed.push_back(JsonValue{{"pointer", rule.pointer}, {"value", rule.value}});
  }
  return {{"at", at},
          {"too_short", too_short},
          {"line", line},
          {"column", column},
          {"excerpt", excerpt},
          {"caret", caret},
          {"reason", reason},
          {"expected", expected},
          {"value_at", value_at},
          {"rules", std::move(listed)}};
}

TOOLDECODE_INLINE std::optional<RefusedText> explain_refusal(const Constraint& constraint,
                                                             std::string_view text) {
  const auto place = constraint.find_refusal(text);
  if (!place) return std::nullopt;
  return refusal::describe(constraint, text, *place);
}

TOOLDECODE_INLINE std::optional<RefusedText> explain_refusal(const Constraint& constraint,
                                                             std::string_view text,
                                                             const JsonValue& schema,
                                                             const SchemaOptions& options) {
  if (schema.is_string()) {
    return explain_refusal(constraint, text, text::parse_exact_json(schema.string()), options);
  }
  auto refused = explain_refusal(constraint, text);
  if (!refused) return refused;
  const auto value  = refusal::value_place(constraint, text, refused->at);
  refused->value_at = value.pointer();
  const BuildBudget budget(options.limits);
  const auto judge = refusal::judge(text, refused->at, [&](const JsonValue& changed) {
    return Grammar::json_schema(changed, options);
  });
  if (refusal::add_keywords(*refused, schema, options.rules.place, judge)) return refused;
  const BuildBudget::Pause pause;  // the budget may be spent
  for (const std::string& pointer : constraint::schemas_at(value, schema, options.rules)) {
    const JsonValue* described = schema.find_at(
        std::string_view(pointer).substr(std::min(pointer.size(), options.rules.place.size())));
    refused->rules.push_back({pointer, described ? refusal::cut(described->text()) : ""});
  }
  return refused;
}

TOOLDECODE_INLINE std::optional<RefusedText> explain_refusal(const ToolCallFSM& calls,
                                                             std::string_view text) {
  const auto place = calls.find_refusal(text);
  if (!place) return std::nullopt;
  RefusedText refused   = refusal::describe(calls, text, *place);
  const auto& format    = calls.shared_->format;
  const ToolSet& tools  = calls.tools();
  ChoiceOptions options = calls.shared_->options;
  const auto state      = calls.advance_bytes(calls.initial(), text.substr(0, place->at));
  const auto tool       = calls.find_tool(*state);
  const BuildBudget budget(options.limits);
  if (!tool) {
    if (!options.text_schema) return refused;
    const JsonValue schema = *options.text_schema;
    refusal::add_keywords(refused, schema, std::string(detail::text_schema_place),
                          refusal::judge(text, place->at, [&](const JsonValue& changed) {
                            options.text_schema = changed;
                            return build_call_grammar(format, tools, options).grammar;
                          }));
    return refused;
  }
  const Tool& called = tools[*tool];
  std::vector<std::shared_ptr<const Tool>> some{tools.share(*tool)};
  std::size_t at  = 0;
  const auto make = [&](const JsonValue& changed) {
    Tool one       = called;
    one.parameters = changed;
    some[at]       = std::make_shared<const Tool>(std::move(one));
    return build_call_grammar(format, ToolSet().replaced(some, {}), options).grammar;
  };
  const auto judge = refusal::judge(text, place->at, make);
  // Other tools are needed only for earlier calls in the text.
  if (judge(called.parameters) != refusal::Reach::same) {
    some.clear();
    for (std::size_t i = 0; i < tools.size(); ++i) some.push_back(tools.share(i));
    at = *tool;
  }
  std::string pointer;
  if (const auto argument = calls.find_argument(*state)) {
    const std::string name = argument_names(called)[*argument];
    refused.value_at       = text::extend_pointer("", name);
    pointer                = text::extend_pointer("/properties", name);
  }
  if (refusal::add_keywords(refused, called.parameters, called.parameters_pointer, judge)) {
    return refused;
  }
  const JsonValue* described = called.parameters.find_at(pointer);
  if (described == nullptr) return refused;
  refused.rules.push_back({called.parameters_pointer + pointer, refusal::cut(described->text())});
  return refused;
}

}  // namespace tooldecode
