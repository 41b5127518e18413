#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/text/string_lexeme.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE void SpeltRows::add(std::size_t row, const Dfa::Shape& shape,
                                      const std::vector<Dfa::State>& exits) {
  std::vector<Dfa::State> made;  // rows inside come after the rows they lead to
  const auto placed = [&](std::vector<Dfa::Edge> edges) {
    for (Dfa::Edge& edge : edges) {
      edge.to = edge.to < shape.exits ? exits[edge.to] : made[edge.to - shape.exits];
    }
    return edges;
  };
  for (const std::vector<Dfa::Edge>& inside : shape.inside) {
    made.push_back(index_.intern(rows_, placed(inside)));
  }
  const std::vector<Dfa::Edge> first = placed(shape.first);
  rows_[row].edges.insert(rows_[row].edges.end(), first.begin(), first.end());
}

}  // namespace tooldecode::text::detail

namespace tooldecode::text {

TOOLDECODE_INLINE Dfa quoted(const TextDfa& text, const Spelling& spelling) {
  if (text.empty()) return Dfa({});
  const std::size_t states = text.rows().size();
  // Row 0 precedes the opening quote; rows 1, ... are the text's states; the last follows the
  // closing quote.
  std::vector<Dfa::SparseRow> rows(states + 2);
  const auto quote   = static_cast<std::uint8_t>(spelling.quote);
  const auto closing = static_cast<Dfa::State>(states + 1);
  rows[0].edges.push_back({quote, quote, 1});
  rows[closing].accepting = rows[closing].closing = true;
  for (TextDfa::State s = 0; s < states; ++s) {
    if (text.rows()[s].accepting) rows[s + 1].edges.push_back({quote, quote, closing});
    rows[s + 1].boundary = true;
  }
  return spelt_lexeme(text, 1, std::move(rows), spelling,
                      [](Speller& speller, const Speller::Runs& runs, Speller::Edges& edges) {
                        speller.literal(runs, edges);
                      });
}

TOOLDECODE_INLINE Dfa string_lexeme(const TextDfa& text, ValueSyntax syntax, char quote) {
  return quoted(text, {.syntax = syntax, .quote = quote});
}

TOOLDECODE_INLINE Dfa key_lexeme(const TextDfa& text, ValueSyntax syntax, char quote) {
  return quoted(text, {.syntax = syntax, .quote = quote, .every = true});
}

TOOLDECODE_INLINE const DfaPointer& any_string(ValueSyntax syntax, char quote) {
  const auto make = [](ValueSyntax s, char q) {
    const BuildBudget::Pause once;
    return std::make_shared<const Dfa>(key_lexeme(TextDfa::repeated(CodePointSet::all()), s, q));
  };
  static const DfaPointer json   = make(ValueSyntax::json, '"');
  static const DfaPointer twice  = make(ValueSyntax::python, '"');
  static const DfaPointer single = make(ValueSyntax::python, '\'');
  if (syntax == ValueSyntax::json) return json;
  return quote == '"' ? twice : single;
}

TOOLDECODE_INLINE const DfaPointer& any_whitespace() {
  static const DfaPointer lexeme = [] {
    const BuildBudget::Pause once;
    std::vector<Dfa::Row> rows(1);
    rows[0].accepting = rows[0].boundary = true;
    for (const char c : std::string_view(" \t\n\r"))
      rows[0].next[static_cast<unsigned char>(c)] = 0;
    return std::make_shared<const Dfa>(std::move(rows));
  }();
  return lexeme;
}

TOOLDECODE_INLINE Dfa utf8_lexeme(const TextDfa& text) {
  std::vector<Dfa::SparseRow> rows(text.rows().size());
  for (TextDfa::State s = 0; s < rows.size(); ++s) {
    rows[s].accepting = text.rows()[s].accepting;
    rows[s].boundary  = true;
  }
  return spelt_lexeme(text, 0, std::move(rows), {},
                      [](Speller& speller, const Speller::Runs& runs, Speller::Edges& edges) {
                        speller.utf8(runs, edges);
                      });
}

}  // namespace tooldecode::text
