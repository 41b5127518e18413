/// \file
/// The delimiters of call formats, as text or as control tokens of the vocabulary.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::formats {

/// The length of the delimiter at the start of a text; 0 where there is none.
///
/// A delimiter is `<...>` without white space inside, or capitals in brackets, with an optional
/// slash before them. Only these may be names of control tokens.
std::size_t delimiter_length(std::string_view text);

/// A pattern that matches exactly these bytes, which are UTF-8.
std::string pattern_of(std::string_view text);

/// The length of the white space at the start of a text.
std::size_t leading_space(std::string_view text);

/// A delimiter without its outer white space.
std::string_view trimmed(std::string_view delimiter);

/// All spellings of a format's text: each delimiter in it as text or as a control token. The first
/// spelling is the text itself.
std::vector<std::string> delimiter_spellings(std::string_view text);

/// The texts that readers search for in closing delimiters: each line without its outer white
/// space, without duplicates. A single byte is left out, because JSON has brackets too.
std::vector<std::string> closing_delimiters(std::initializer_list<std::string_view> closings);

/// A text of a format, its delimiters in either spelling.
NodeId delimiter(Grammar& grammar, std::string_view text);

/// The id that Mistral's models give a call: nine letters or digits.
NodeId call_id(Grammar& grammar);

/// The number of a call: one to nine digits.
NodeId call_number(Grammar& grammar);

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/delimiter.ipp>
#endif
