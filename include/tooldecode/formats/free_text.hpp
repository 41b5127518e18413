/// \file
/// Free text beside calls as lexemes, and reasoning blocks.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/dfa_pointer.hpp>

namespace tooldecode::formats {

/// The delimiters of a reasoning block before an answer.
struct ReasoningDelimiters {
  std::string begin = "<think>";  ///< if empty, the prompt has opened the block and it must be
                                  ///< closed
  std::string end = "</think>";   ///< its first occurrence closes the block
  friend bool operator==(const ReasoningDelimiters&, const ReasoningDelimiters&) = default;
};

/// The delimiters of free text in formats that mark it, before calls and in answers without calls.
struct TextFrame {
  std::string begin{};  ///< if empty, text is not marked
  std::string end{};    ///< if empty, the text ends with the answer or where calls begin
  std::string last{};   ///< may end an answer without calls
};

/// Free text: any bytes without control tokens, with these conditions.
struct FreeText {
  std::vector<std::string> until{};      ///< ends with the first of these; if empty, it ends
                                         ///< anywhere
  std::vector<std::string> without{};    ///< holds none of these
  std::vector<std::string> not_first{};  ///< does not begin with one of these, even after white
                                         ///< space
  std::string barred{};                  ///< holds no match of this pattern
  std::string begun{};                   ///< this precedes it and counts as a part of it
  auto operator<=>(const FreeText&) const = default;
};

/// The automaton of free text without `not_first` and `barred`. A state is the longest suffix of
/// the text that begins an end or an excluded text. These may hold control tokens; once one has
/// been read, the rest must follow.
///
/// Source: Aho and Corasick 1975
text::Dfa text_between(const FreeText& text);

/// One of several texts, with or without white space before it.
///
/// \par Complexity  O(bytes of the texts x 256), unless one begins with white space
text::Dfa behind_space(const std::vector<std::string>& texts);

/// Free text as a lexeme. Up to 256 lexemes without `begun` are cached for the whole process.
///
/// \par Complexity  O(bytes of the delimiters x 256), or O(log) where the text is in the cache
text::DfaPointer free_text(const FreeText& text);

/// Any bytes without control tokens.
text::DfaPointer any_text();

/// All spellings of several delimiters, see `delimiter_spellings`.
std::vector<std::string> all_spellings(std::span<const std::string> delimiters);

/// A reasoning block that ends with one of `ends` and holds none of `without`.
NodeId reasoning_block(Grammar& grammar, std::string_view begin, std::span<const std::string> ends,
                       std::span<const std::string> without);

/// A text with its reasoning block replaced by spaces, so that offsets stay valid.
///
/// \param open_calls  delimiters that also end a block; they stay in the text
std::string without_reasoning(std::string_view text, const ReasoningDelimiters& delimiters,
                              std::span<const std::string> open_calls = {});

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/free_text.ipp>
#endif
