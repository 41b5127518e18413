/// \file
/// lark_pattern: converts the regular expressions of llguidance's Lark syntax, which are those of
/// Rust's regex crate, to ECMA-262 patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/text_cursor.hpp>
#include <tooldecode/text/unicode_properties.hpp>

namespace tooldecode::ebnf {

/// Appends a character to a pattern.
void write_pattern(char32_t c, std::string& out);
/// Appends a class of characters to a pattern.
void write_pattern(const text::CodePointSet& set, std::string& out);

/// The characters of a set in either case, by simple case folding.
///
/// \par Errors      Error{unsupported_pattern} for a set with some but not all cased letters beyond
///                  ASCII, because there is no table of their cases here
[[nodiscard]] text::CodePointSet either_case(const text::CodePointSet& set);

/// Parses an expression and writes it as an ECMA-262 pattern.
class LarkPattern : text::TextCursor<Errc::malformed_pattern, Errc::unsupported_pattern> {
 public:
  /// \param flags  of the whole expression: i, m, s, u and x
  LarkPattern(std::string_view text, std::string_view flags);

  /// \par Errors      Error{malformed_pattern, unsupported_pattern} with the byte,
  ///                  Error{limit_exceeded}
  [[nodiscard]] std::string read();

 private:
  using Set                                 = text::CodePointSet;
  static constexpr std::uint32_t max_nested = 200;
  struct Flags {
    bool ignores_case = false, dot_is_all = false, is_spaced = false, is_unicode = true;
  };

  void skip();
  void set_flag(char flag, bool is_on, std::size_t at);

  void alternatives();
  void sequence();
  // Returns whether it wrote a part that a quantifier may follow.
  bool atom();
  // Writes a class. Without the flag u one beyond ASCII is refused: it would match single bytes.
  void write_characters(const Set& set, std::size_t at);
  void check_ascii(const Set& set, std::size_t at) const;
  bool end_anchor(std::size_t begin) const;
  bool group();
  static bool is_group_name(std::string_view name);
  bool inside(std::size_t begin);
  void quantifiers(std::size_t begin);
  std::string bounds();

  // A range, or one character if `last` is 0; folded if case is ignored.
  [[nodiscard]] Set folded(char32_t first, char32_t last = 0) const;
  // Without the flag u, of ASCII letters only.
  [[nodiscard]] Set in_either_case(const Set& set) const;
  static Set property(std::string_view name, std::size_t at);
  std::optional<Set> letter_class(char c, std::size_t at) const;
  Set escape(bool in_class);
  char32_t escaped_character(std::size_t begin);
  char32_t escaped_number(std::size_t digits, std::size_t begin);

  Set bracket();
  // The items up to an operator or the end.
  Set operand(std::size_t begin);
  Set item(std::size_t begin);
  Set posix();

  std::uint32_t depth_ = 0;
  Flags flags_;
  std::set<std::string, std::less<>> names_;
  std::string out_;
};

/// The ECMA-262 pattern that matches the same whole texts as an expression in Rust's syntax:
/// classes, groups, counts and flags; digits, words, blanks and the dot by Unicode. Anchors are
/// allowed only at the ends, where they have no effect.
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
