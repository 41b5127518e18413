/// \file
/// Definitions of utf8_lexeme.hpp.
#pragma once

#include <utility>
#include <vector>

#include <tooldecode/text/utf8_lexeme.hpp>

namespace tooldecode::text {

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
