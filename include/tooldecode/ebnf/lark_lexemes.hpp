/// \file
/// LarkLexeme: one terminal as the lexer sees it: where it ends, and which others may continue it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::ebnf {

/// A terminal, or a part of the grammar that acts as one.
struct LarkLexeme {
  std::string name{};
  text::DfaPointer dfa{};                          ///< its nonempty texts; null for a part
  std::optional<std::string> literal{};            ///< its only text, if there is just one
  std::optional<text::CodePointSet> characters{};  ///< its texts, if each is one character
  bool is_lazy      = false;  ///< ends as soon as it can: no text is a prefix of another
  bool may_be_empty = false;  ///< whether the terminal also matches the empty text
  Rules::MakePart make{};
  bool is_json = false;   ///< part: a JSON value; nothing is ignored before it
  text::ByteSet first{};  ///< first bytes of its texts
  text::ByteSet more{};   ///< of a value: bytes that would continue a number
};

/// The bytes with which one lexeme may continue after a text of another.
///
/// \par Complexity  O(product of the states x 256)
[[nodiscard]] text::ByteSet find_continuing(const text::Dfa& ended, const text::Dfa& other);

/// How the texts of two lexemes overlap.
struct LarkMeeting {
  bool is_shared = false;  ///< they have a text in common
  bool is_inside = false;  ///< a text of the second is a proper prefix of a text of the first
};
/// \par Complexity  O(product of the states x 256)
[[nodiscard]] LarkMeeting find_meeting(const text::Dfa& a, const text::Dfa& b);

/// Some texts of a lexeme, and the bytes that must not follow them because the lexer would
/// continue.
struct LarkVariant {
  text::DfaPointer dfa;
  text::ByteSet forbidden;
};

/// The texts of a lexeme that a longest-match lexer finds, grouped by the bytes that must not
/// follow them.
///
/// \param longer  competing lexemes, whose matches may be longer
/// \param lazy    competing lazy lexemes, whose matches end this one's
/// \param follow  the bytes that may follow
///
/// \par Errors      Error{limit_exceeded}
[[nodiscard]] std::vector<LarkVariant> split_lexeme(const LarkLexeme& lexeme,
                                                    const std::vector<const text::Dfa*>& longer,
                                                    const std::vector<const text::Dfa*>& lazy,
                                                    const text::ByteSet& follow);

/// The texts of an automaton that do not begin with any of some bytes.
[[nodiscard]] text::DfaPointer without_first(const text::Dfa& dfa, const text::ByteSet& forbidden);

/// The nonempty texts; of a lazy lexeme only those without a proper prefix that is one of its
/// texts.
[[nodiscard]] text::TextDfa lexeme_texts(const text::TextDfa& all, bool is_lazy);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_lexemes.ipp>
#endif
