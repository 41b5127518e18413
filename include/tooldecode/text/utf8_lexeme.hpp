/// \file
/// utf8_lexeme: the texts of a TextDfa as a lexeme: their UTF-8, nothing around it.
#pragma once

#include <utility>
#include <vector>

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/speller.hpp>
#include <tooldecode/text/spelt_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

/// The texts of an automaton over code points as strict UTF-8, without quotes or escapes;
/// characters are the units.
///
/// \par Complexity  as spelt_lexeme
/// \par Threads     pure
/// \par Errors      as spelt_lexeme; nothing is accepted where the text automaton is empty
/// \par Source      RFC 3629
[[nodiscard]] inline Dfa utf8_lexeme(const TextDfa& text) {
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
