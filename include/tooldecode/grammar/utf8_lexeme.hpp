/// \file
/// utf8_lexeme: the texts of a TextDfa as a lexeme: their UTF-8, nothing around it.
#pragma once

#include <utility>
#include <vector>

#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/grammar/speller.hpp>
#include <tooldecode/grammar/text_dfa.hpp>

namespace tooldecode {

/// The texts of an automaton over code points as strict UTF-8, without quotes or escapes;
/// characters are the units.
///
/// \par Complexity  O(states x ranges of code points that a state tells apart)
/// \par Threads     pure
/// \par Errors      none; nothing is accepted where the text automaton is empty
/// \par Source      RFC 3629
[[nodiscard]] inline Dfa utf8_lexeme(const TextDfa& text) {
  std::vector<Dfa::SparseRow> rows(text.rows().size());
  Speller speller(rows, {});
  for (TextDfa::State s = 0; s < text.rows().size(); ++s) {
    Speller::Edges edges;
    speller.utf8(Speller::runs(text, s, 0), edges);
    rows[s].edges     = std::move(edges);
    rows[s].accepting = text.rows()[s].accepting;
    rows[s].boundary  = true;
  }
  return Dfa(rows);
}

}  // namespace tooldecode
