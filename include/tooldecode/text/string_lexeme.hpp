/// \file
/// String literals as lexemes: JSON's and Python's, of any text or of the texts of a TextDfa.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/speller.hpp>
#include <tooldecode/text/spelt_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::text {

/// The strings of a text between quotes.
Dfa quoted(const TextDfa& text, const Spelling& spelling);

/// A string literal between two quotes whose text the automaton accepts, spelt as writers do.
///
/// ASCII characters are plain, or escaped if they must be: in the short form if the syntax has one
/// that writers use (`\n`), else by number (`\u001f`; Python `\x1f`). DEL and characters beyond
/// ASCII are plain or escaped by number, in JSON with surrogate pairs. So a pattern does not admit
/// `\u0041` or `\/`, which common writers do not produce and which would cost a state for each
/// digit; `key_lexeme` and `any_string` do.
///
/// Units are characters (code points), so lengths do not depend on the spelling. UTF-8 is strict.
///
/// \par Complexity  as spelt_lexeme
/// \par Errors      as spelt_lexeme; accepts nothing if the text automaton is empty
/// \par Source      RFC 8259, section 7; Python language reference, section 2.4.1
[[nodiscard]] Dfa string_lexeme(const TextDfa& text, ValueSyntax syntax, char quote);

/// A quoted key whose text the automaton accepts, in every spelling that `any_string` has.
[[nodiscard]] Dfa key_lexeme(const TextDfa& text, ValueSyntax syntax, char quote);

/// Any string literal with this quote, in every spelling except Python's octal and named escapes
/// and line continuations. One lexeme is shared by the whole process.
[[nodiscard]] const DfaPointer& any_string(ValueSyntax syntax, char quote);

/// JSON white space; each byte is a unit. Limit the units to stop a model that loops on spaces.
[[nodiscard]] const DfaPointer& any_whitespace();

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/string_lexeme.ipp>
#endif
