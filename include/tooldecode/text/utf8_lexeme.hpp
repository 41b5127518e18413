/// \file
/// utf8_lexeme: the UTF-8 of a TextDfa's texts as a lexeme, without quotes.
#pragma once

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/speller.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

/// The texts of an automaton over code points as strict UTF-8, without quotes or escapes. Units are
/// characters.
///
/// \par Complexity  as spelt_lexeme
/// \par Errors      as spelt_lexeme; accepts nothing if the text automaton is empty
/// \par Source      RFC 3629
[[nodiscard]] Dfa utf8_lexeme(const TextDfa& text);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/utf8_lexeme.ipp>
#endif
