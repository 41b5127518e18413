/// \file
/// utf8_lexeme: the texts of a TextDfa as a lexeme: their UTF-8, nothing around it.
#pragma once

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/speller.hpp>
#include <tooldecode/text/spelt_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

/// The texts of an automaton over code points as strict UTF-8, without quotes or escapes;
/// characters are the units.
///
/// \par Complexity  as spelt_lexeme
/// \par Errors      as spelt_lexeme; nothing is accepted where the text automaton is empty
/// \par Source      RFC 3629
[[nodiscard]] Dfa utf8_lexeme(const TextDfa& text);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/utf8_lexeme.ipp>
#endif
