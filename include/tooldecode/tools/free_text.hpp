/// \file
/// Free text beside calls as lexemes: up to what opens a call, or without it; a block of reasoning.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/dfa_pointer.hpp>

namespace tooldecode::tools {

/// What stands around a block of reasoning before an answer.
struct ReasoningDelimiters {
  std::string begin = "<think>";   ///< empty: the prompt has opened the block, it must be closed
  std::string end   = "</think>";  ///< the first one closes the block
  friend bool operator==(const ReasoningDelimiters&, const ReasoningDelimiters&) = default;
};

/// What stands around free text where a format marks it, before calls and in an answer without any.
struct TextFrame {
  std::string begin{};  ///< empty: text is not marked
  std::string end{};    ///< empty: the text ends with the answer, or where calls begin
  std::string last{};   ///< may end an answer without calls
};

/// What free text is: any bytes and no control tokens, but for this.
struct FreeText {
  std::vector<std::string> until{};      ///< ends with the first of these; none: ends anywhere
  std::vector<std::string> without{};    ///< holds none of these
  std::vector<std::string> not_first{};  ///< begins with none of these, with white space or not
  std::string barred{};                  ///< holds no match of this pattern
  auto operator<=>(const FreeText&) const = default;
};

/// Free text by the longest beginning of an end or of what it must not hold that it ends with.
/// These may hold control tokens; where one has been read, the rest must follow.
///
/// Source: Aho and Corasick 1975
text::Dfa text_between(const FreeText& text);

/// One of some texts, with white space before it or not.
///
/// \par Complexity  O(bytes of the texts x 256), but where one begins with white space
text::Dfa behind_space(const std::vector<std::string>& texts);

/// Free text as a lexeme; made once where it does not depend on tools.
///
/// \par Complexity  O(bytes of the delimiters x 256), or O(log) where the text is known
text::DfaPointer free_text(const FreeText& text);

/// Any bytes, and no control tokens.
text::DfaPointer any_text();

/// The spellings of delimiters, see `delimiter_spellings`.
std::vector<std::string> all_spellings(std::span<const std::string> delimiters);

/// A block of reasoning up to one of some ends, without some delimiters.
NodeId reasoning_block(Grammar& grammar, std::string_view begin, std::span<const std::string> ends,
                       std::span<const std::string> without);

/// A text whose block of reasoning, if it has one, is made blank: places stay where they are.
///
/// \param open_calls  delimiters that end a block, too, and are no part of it
std::string without_reasoning(std::string_view text, const ReasoningDelimiters& delimiters,
                              std::span<const std::string> open_calls = {});

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/free_text.ipp>
#endif
