/// \file
/// LarkLexeme: what a lexer knows of one terminal beside others: where it ends, and which of them
/// goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::ebnf {

/// A terminal, or a part of a grammar that stands for one.
struct LarkLexeme {
  std::string name{};                    ///< for messages
  text::DfaPointer dfa{};                ///< its texts, none of them empty; null for a part
  std::optional<std::string> literal{};  ///< its only text
  std::optional<text::CodePointSet> characters{};  ///< its texts where each is one character
  bool is_lazy      = false;  ///< ends where it first can: no text begins with another
  bool may_be_empty = false;  ///< the empty text is one of the terminal's too
  Rules::MakePart make{};     ///< part
  bool is_json = false;       ///< part: a value, before which nothing is ignored
  text::ByteSet first{};      ///< bytes that a text begins with
  text::ByteSet more{};       ///< of a value: bytes by which a number would go on
};

/// The bytes by which, after some text of one lexeme, another one may go on.
///
/// \par Complexity  O(product of the states x 256)
[[nodiscard]] text::ByteSet find_continuing(const text::Dfa& ended, const text::Dfa& other);

/// How texts of two lexemes meet.
struct LarkMeeting {
  bool is_shared = false;  ///< some text is both's
  bool is_inside = false;  ///< some text of the second begins a longer one of the first
};
/// \par Complexity  O(product of the states x 256)
[[nodiscard]] LarkMeeting find_meeting(const text::Dfa& a, const text::Dfa& b);

/// Some texts of a lexeme, and the bytes that do not follow them, since the lexer would go on.
struct LarkVariant {
  text::DfaPointer dfa;
  text::ByteSet forbidden;
};

/// The texts of a lexeme as a lexer finds them, which takes the longest one of all that it looks
/// for, by what must not follow them.
///
/// \param longer  lexemes that are looked for beside it, which may be longer
/// \param lazy    lazy lexemes that are looked for beside it, and end its texts
/// \param follow  the bytes that may follow
///
/// \par Errors  Error{limit_exceeded}
[[nodiscard]] std::vector<LarkVariant> split_lexeme(const LarkLexeme& lexeme,
                                                    const std::vector<const text::Dfa*>& longer,
                                                    const std::vector<const text::Dfa*>& lazy,
                                                    const text::ByteSet& follow);

/// The texts of an automaton that begin with none of some bytes.
[[nodiscard]] text::DfaPointer without_first(const text::Dfa& dfa, const text::ByteSet& forbidden);

/// The texts that are not empty, and of a lazy lexeme those that no other one begins.
[[nodiscard]] text::TextDfa lexeme_texts(const text::TextDfa& all, bool is_lazy);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_lexemes.ipp>
#endif
