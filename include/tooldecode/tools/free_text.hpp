/// \file
/// Free text beside calls as lexemes: up to what opens a call, or without it; a block of reasoning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>
#include <tooldecode/tools/mark.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// What stands around a block of reasoning before an answer.
struct ReasoningMarks {
  std::string begin = "<think>";   ///< empty: the prompt has opened the block, it must be closed
  std::string end   = "</think>";  ///< the first one closes the block
  friend bool operator==(const ReasoningMarks&, const ReasoningMarks&) = default;
};

namespace detail {

/// Free text by the longest beginning of a trigger that it ends with; behind a trigger nothing may
/// follow, and that state alone is accepting.
///
/// \param triggers  may hold control tokens: those of a beginning stand in the text too
/// \param allowed   further ones that the text may hold; it holds no others
///
/// Source: Aho and Corasick 1975
inline std::vector<Dfa::Row> text_and_triggers(std::span<const std::string> triggers,
                                               std::span<const std::string> allowed = {}) {
  static constexpr auto open  = static_cast<std::uint8_t>(control_open);
  static constexpr auto close = static_cast<std::uint8_t>(control_close);
  std::vector<Dfa::Row> rows(1);
  const auto insert = [&](std::string_view text) {
    Dfa::State at = 0;
    for (const char c : text) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (rows[at].next[byte] == Dfa::dead) {
        const auto fresh    = static_cast<Dfa::State>(rows.size());
        rows[at].next[byte] = fresh;
        rows.emplace_back();
      }
      at = rows[at].next[byte];
    }
    return at;
  };
  for (const std::string& trigger : triggers) rows[insert(trigger)].accepting = true;
  for (const std::string& name : allowed) insert(control_open + name + control_close);
  // In the order of their lengths: each beginning with the longest other one that it ends with,
  // which is none inside a control token.
  std::vector<std::pair<Dfa::State, Dfa::State>> order{{0, 0}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [at, shorter] = order[i];
    if (shorter != Dfa::dead && rows[shorter].accepting) rows[at].accepting = true;
    if (rows[at].accepting) {
      rows[at] = {.accepting = true};
      continue;
    }
    for (unsigned b = 0; b < 256; ++b) {
      const bool is_text   = at == 0 && b != open && b != close;
      Dfa::State otherwise = is_text ? 0 : Dfa::dead;
      if (at != 0 && shorter != Dfa::dead) otherwise = rows[shorter].next[b];
      Dfa::State& next = rows[at].next[b];
      if (next == Dfa::dead) {
        next = otherwise;
      } else {
        const bool is_closed = shorter == Dfa::dead && b == close;
        order.emplace_back(next, is_closed ? 0 : otherwise);
      }
    }
  }
  return rows;
}

/// Free text that never holds a trigger; it may end anywhere, but in a control token.
inline DfaPointer text_without(std::span<const std::string> triggers,
                               std::span<const std::string> allowed = {}) {
  std::vector<Dfa::Row> rows = text_and_triggers(triggers, allowed);
  std::vector<char> full;
  for (const Dfa::Row& row : rows) full.push_back(row.accepting ? 1 : 0);
  for (Dfa::Row& row : rows) {
    row.accepting = std::count(row.next.begin(), row.next.end(), Dfa::dead) <= 2;
    for (Dfa::State& next : row.next) {
      if (next != Dfa::dead && full[next] != 0) next = Dfa::dead;
    }
  }
  return std::make_shared<const Dfa>(std::move(rows));
}

/// Free text up to the end of the first trigger.
inline DfaPointer text_until(std::span<const std::string> triggers,
                             std::span<const std::string> allowed = {}) {
  return std::make_shared<const Dfa>(text_and_triggers(triggers, allowed));
}

/// A mark without the white space around it.
inline std::string_view trimmed(std::string_view mark) {
  const std::size_t first = std::min(mark.find_first_not_of(" \t\r\n"), mark.size());
  return mark.substr(first, mark.find_last_not_of(" \t\r\n") + 1 - first);
}

/// Any bytes, and no control tokens.
inline DfaPointer any_text() {
  return text_without({});
}

/// Those texts of a lexeme that do not begin with some bytes, white space before them passed over.
inline DfaPointer not_beginning(const Dfa& text, std::string_view bytes) {
  struct Place {
    Dfa::State text;
    std::size_t matched;  // of the bytes; all of them: the text does not begin so
    auto operator<=>(const Place&) const = default;
  };
  const auto is_space = [](unsigned b) { return b == ' ' || b == '\t' || b == '\n' || b == '\r'; };
  std::vector<Place> order{{0, 0}};
  std::map<Place, Dfa::State> number{{order[0], 0}};
  std::vector<Dfa::Row> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Place at = order[i];
    Dfa::Row row{.accepting = text.accepting(at.text)};
    for (unsigned b = 0; b < 256; ++b) {
      Place next{text.next(at.text, static_cast<std::uint8_t>(b)), bytes.size()};
      if (at.matched < bytes.size()) {
        if (b == static_cast<unsigned char>(bytes[at.matched])) {
          next.matched = at.matched + 1;
          if (next.matched == bytes.size()) continue;
        } else if (at.matched == 0 && is_space(b)) {
          next.matched = 0;
        }
      }
      if (next.text == Dfa::dead) continue;
      const auto [known, fresh] = number.emplace(next, static_cast<Dfa::State>(order.size()));
      if (fresh) order.push_back(next);
      row.next[b] = known->second;
    }
    rows.push_back(std::move(row));
  }
  return std::make_shared<const Dfa>(std::move(rows));
}

/// A whole block of reasoning.
inline NodeId reasoning_block(Grammar& grammar, const ReasoningMarks& marks) {
  return grammar.sequence({grammar.lexeme(any_whitespace(), {0, 2}), mark(grammar, marks.begin),
                           grammar.lexeme(text_until(mark_spellings(marks.end)))});
}

/// A text whose block of reasoning, if it has one, is made blank: places stay where they are.
inline std::string without_reasoning(std::string_view text, const ReasoningMarks& marks) {
  std::string result(text);
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (!text.substr(begin).starts_with(marks.begin)) return result;
  const std::size_t end  = text.find(marks.end, begin + marks.begin.size());
  const std::size_t last = end == std::string_view::npos ? text.size() : end + marks.end.size();
  std::fill_n(result.begin(), last, ' ');
  return result;
}

}  // namespace detail

}  // namespace tooldecode
