/// \file
/// The delimiters of call formats: as text, or as the control tokens that a vocabulary has for
/// them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::tools {

/// The length of the delimiter that a text begins with, 0 where it begins with none: `<...>`
/// without white space inside, or capitals in brackets, a slash before them. Only these may be
/// names of control tokens.
std::size_t delimiter_length(std::string_view text);

/// A pattern of these bytes and nothing else, which are UTF-8.
std::string pattern_of(std::string_view text);

/// A delimiter without the white space around it.
std::string_view trimmed(std::string_view delimiter);

/// All ways to write a text of a format: each delimiter in it as text or as a control token. The
/// first is the text itself.
std::vector<std::string> delimiter_spellings(std::string_view text);

/// What readers look for among what closes values and calls: each line of it without the white space
/// around it, once. A single bracket is none: JSON has it too.
std::vector<std::string> closing_delimiters(std::initializer_list<std::string_view> closings);

/// A text of a format, its delimiters in either spelling.
NodeId delimiter(Grammar& grammar, std::string_view text);

/// The name that Mistral's models give a call: nine letters or digits.
NodeId call_id(Grammar& grammar);

/// The number of a call: one to nine digits.
NodeId call_number(Grammar& grammar);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/delimiter.ipp>
#endif
