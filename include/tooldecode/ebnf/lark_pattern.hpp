/// \file
/// lark_pattern: regular expressions in the syntax of Lark's grammars as llguidance reads it, which
/// is that of Rust's regex crate, written as patterns of ECMA-262.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/unicode_properties.hpp>

namespace tooldecode::ebnf {

/// Appends a character to a pattern.
void write_pattern(char32_t c, std::string& out);
/// Appends a class of characters to a pattern.
void write_pattern(const text::CodePointSet& set, std::string& out);

/// The characters of a set in either case, as simple case folding has it.
///
/// \par Errors  Error{unsupported_pattern} for letters beyond ASCII that have cases, but not all of
///              them: their cases are in no table here
[[nodiscard]] text::CodePointSet either_case(const text::CodePointSet& set);

/// White space as Unicode has it.
[[nodiscard]] const text::CodePointSet& unicode_space();
/// What words are made of as Unicode has it: letters, marks, digits, and what connects them.
[[nodiscard]] const text::CodePointSet& unicode_word();

/// Reads an expression and writes it again.
class LarkPattern {
 public:
  /// \param flags  of the whole: i, m, s, u and x
  LarkPattern(std::string_view text, std::string_view flags);

  /// \par Errors  Error{malformed_pattern, unsupported_pattern} with the byte, Error{limit_exceeded}
  [[nodiscard]] std::string read();

 private:
  using Set                                 = text::CodePointSet;
  static constexpr std::uint32_t max_nested = 200;
  struct Flags {
    bool ignores_case = false, dot_is_all = false, is_spaced = false, is_unicode = true;
  };

  [[noreturn]] static void fail(const std::string& what, std::size_t at);
  [[noreturn]] static void refuse(const std::string& what, std::size_t at);
  [[nodiscard]] bool has(std::string_view next) const;
  bool take(std::string_view next);
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip();
  void set_flag(char flag, bool is_on, std::size_t at);

  void alternatives();
  void sequence();
  // Whether a part was written to which a quantifier may belong.
  bool atom();
  bool end_anchor(std::size_t begin) const;
  bool group();
  bool inside(std::size_t begin);
  void quantifiers(std::size_t begin);
  std::string bounds();

  // Characters ----------------------------------------------------------------------------------

  // A range, or one character where its end is 0; folded where the case is ignored.
  [[nodiscard]] Set folded(char32_t first, char32_t last = 0) const;
  char32_t character();
  static Set property(std::string_view name, std::size_t at);
  // The classes of one letter.
  std::optional<Set> letter_class(char c, std::size_t at) const;
  // What follows a backslash.
  Set escape(bool in_class);
  char32_t escaped_character(std::size_t begin);
  char32_t hex(std::size_t digits, std::size_t begin);

  // Classes -------------------------------------------------------------------------------------

  Set bracket();
  // The items up to an operator or the end; a bracket is one where it is the first.
  Set operand(std::size_t begin, bool is_first);
  Set item(std::size_t begin);
  Set posix();

  std::string_view text_;
  std::size_t at_      = 0;
  std::uint32_t depth_ = 0;
  Flags flags_;
  std::string out_;
};

/// The pattern of ECMA-262 that matches, as a whole, what an expression of Rust's syntax matches:
/// classes, groups, counts and flags; digits, words, blanks and the dot by Unicode. Anchors may stand
/// at the ends alone, where they say nothing.
///
/// \par Complexity  O(text), and O(ranges) for a class
/// \par Errors      Error{malformed_pattern} or, for look-around, references and word boundaries,
///                  Error{unsupported_pattern}, with the byte; Error{limit_exceeded}
/// \par Source      documentation of the crates regex and derivre
[[nodiscard]] std::string lark_pattern(std::string_view text, std::string_view flags = "");

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_pattern.ipp>
#endif
