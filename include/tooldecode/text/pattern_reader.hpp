/// \file
/// PatternReader: a cursor over a pattern's text that reads escapes, classes and names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/unicode_properties.hpp>

namespace tooldecode::text {

/// A cursor over a pattern's text; it reads escapes and classes, and reports errors.
///
/// \par Complexity  O(characters read), and O(ranges) for a property
/// \par Threads     one object per thread
/// \par Errors      Error{malformed_pattern} with the byte, also for text that is not UTF-8;
///                  Error{unsupported_pattern} from `check`; Error{limit_exceeded}
/// \par Source      ECMA-262, section 22.2.1
class PatternReader {
 public:
  static constexpr std::size_t max_characters = 50'000;

  explicit PatternReader(std::string_view pattern);

  [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
  /// Number of characters before the cursor.
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  void go_to(std::size_t at) noexcept { at_ = at; }
  [[nodiscard]] std::string place(std::size_t at) const;
  /// Throws an error at a position, or at the cursor.
  [[noreturn]] void fail(const std::string& what, std::size_t at) const;
  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }
  /// Records an unsupported construct. `check` throws it after the rest has parsed, since syntax
  /// errors come first.
  void refuse(const std::string& what, std::size_t at);
  [[nodiscard]] bool has(char32_t c, std::size_t ahead = 0) const;
  bool take(char32_t c);
  /// Reads the next character; `missing` says what is expected there.
  char32_t any(const char* missing);
  [[nodiscard]] bool has_digit() const;
  /// Reads digits, without leading zeros.
  std::u32string digits();
  /// Throws the first recorded refusal.
  void check() const;

  [[nodiscard]] static CodePointSet word();

  /// A character or a class; a surrogate is one character that no text contains.
  struct Member {
    CodePointSet set;
    std::optional<char32_t> code;  ///< set for a single character
  };
  /// Reads what follows a backslash.
  Member escape();
  /// Reads what follows the `u` of an escape.
  char32_t unicode_escape();
  /// Reads a class after its opening bracket, to its end.
  CodePointSet bracket();

  /// Reads a group's name and the `>` after it.
  std::u32string group_name();

 private:
  static bool is_identifier(char32_t c, bool is_first);

  void check_encoding(std::string_view pattern) const;
  static CodePointSet space();
  static Member one(char32_t code) { return {{{code, code}}, code}; }
  char32_t hex(int digits);
  CodePointSet property(std::size_t begin);

  std::u32string text_;
  std::size_t at_ = 0;
  std::optional<Error> refused_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/pattern_reader.ipp>
#endif
