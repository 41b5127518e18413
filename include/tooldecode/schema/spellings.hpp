/// \file
/// Spellings: writes a schema's constants, separators, strings and free keys in JSON or Python.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::schema {

/// Adds the texts of known values, and of separators between values, to a Grammar.
///
/// \par Complexity  O(size of the value); a key of a free-form object O(bytes of the names that it
///                  avoids)
/// \par Threads     one at a time per Grammar
class Spellings {
 public:
  using Json = JsonValue;

  /// \param whitespace  most bytes of optional whitespace; 0: only ", " and ": "
  /// \param every_spelling  see KeyedSet
  /// \param excluded        see SchemaOptions
  Spellings(Grammar& grammar, text::ValueSyntax syntax, std::uint32_t whitespace = 40,
            bool every_spelling = false, std::vector<std::string> excluded = {});

  [[nodiscard]] text::ValueSyntax syntax() const noexcept { return syntax_; }
  [[nodiscard]] bool every_spelling() const noexcept { return every_spelling_; }
  [[nodiscard]] NodeId end() const noexcept { return end_; }
  [[nodiscard]] NodeId space() const noexcept { return space_; }
  [[nodiscard]] NodeId comma() const noexcept { return comma_; }
  [[nodiscard]] NodeId colon() const noexcept { return colon_; }
  /// A bracket and the white space inside it.
  [[nodiscard]] NodeId opening(char bracket) const;
  [[nodiscard]] NodeId closing(char bracket) const;

  /// The spellings of a scalar: strings plainly and with every non-ASCII character escaped, in
  /// Python with either quote; an integral number with and without a point.
  [[nodiscard]] std::vector<std::string> spellings(const Json& value) const;

  /// A string of some length whose text an automaton accepts; nullopt accepts any text.
  [[nodiscard]] NodeId string(const std::optional<text::TextDfa>& text,
                              const text::Occurrences& length);

  /// A string of a format and some length; the format's lexeme is shared by the whole process.
  [[nodiscard]] NodeId format(const std::string& name, const text::TextDfa& texts,
                              const text::Occurrences& length);

  /// Whether a text contains excluded bytes; a key that does cannot be written, because named keys
  /// have no escapes.
  [[nodiscard]] bool holds_excluded(const std::string& text) const;

  /// The plainest spelling of a key as a string, one for each quote.
  [[nodiscard]] std::vector<std::string> key(const std::string& name) const;

  /// Disjoint lexemes for the keys that an object does not name: strings in every spelling, or
  /// identifiers if keys are plain.
  ///
  /// \param texts  texts of the keys; null for any
  [[nodiscard]] std::vector<text::DfaPointer> other_keys(const text::TextDfa* texts,
                                                         bool plain) const;

  /// The identifiers among the texts of an automaton.
  [[nodiscard]] static text::TextDfa identifiers_among(const text::TextDfa& text);
  /// The texts of an automaton that are identifiers, which need no quotes or escapes.
  [[nodiscard]] static text::Dfa identifiers(const text::TextDfa& text);

  [[nodiscard]] static text::DfaPointer identifier(std::string_view before, std::string_view after);
  /// The same of identifiers that an automaton accepts, whose bytes `after` does not begin with.
  [[nodiscard]] static text::DfaPointer identifier(std::string_view before, const text::Dfa& words,
                                                   std::string_view after);

 private:
  // What all of a grammar's spellings with this white space share.
  template <class Make>
  NodeId once(std::string_view name, const Make& make) const {
    return grammar_.once(std::string(name) + spaces_, make);
  }
  NodeId separator(char mark);

  [[nodiscard]] text::DfaPointer without_excluded(text::DfaPointer lexeme) const;
  // Throws if all texts have one.
  [[nodiscard]] std::vector<std::string> free_of_excluded(std::vector<std::string> texts) const;

  static std::string python_string(const std::string& text, char quote, bool ascii);

  Grammar& grammar_;
  text::ValueSyntax syntax_;
  bool every_spelling_;
  std::vector<std::string> excluded_;
  NodeId end_;
  std::string spaces_;  // names the white space
  NodeId space_, comma_, colon_;
};

/// Writes as an escape the character of a string with which an excluded text begins; the value
/// stays the same. A text that begins outside strings stays, and so may one of an escape's own
/// characters. See SchemaOptions::excluded.
[[nodiscard]] std::string escape_excluded(std::string json, std::span<const std::string> excluded);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/spellings.ipp>
#endif
