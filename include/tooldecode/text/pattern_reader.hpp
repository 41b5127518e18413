/// \file
/// PatternReader: the text of a pattern as it is read, and what one character of it stands for.
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

/// A place in a pattern's text; it reads escapes and classes, and knows how errors are worded.
///
/// \par Complexity  O(characters read), and O(ranges) for a property
/// \par Threads     one object per thread
/// \par Errors      Error{malformed_pattern} with the byte, where the text is no UTF-8 too;
///                  Error{unsupported_pattern} from `check`; Error{limit_exceeded}
/// \par Source      ECMA-262, section 22.2.1
class PatternReader {
 public:
  static constexpr std::size_t max_characters = 50'000;

  explicit PatternReader(std::string_view pattern);

  [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
  /// The characters before this place.
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  void go_to(std::size_t at) noexcept { at_ = at; }
  /// A place as errors name it.
  [[nodiscard]] std::string place(std::size_t at) const;
  /// Says what is wrong, at a place or here.
  [[noreturn]] void fail(const std::string& what, std::size_t at) const;
  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }
  /// What is right but cannot be kept to is refused once the rest has proved to be right too.
  void refuse(const std::string& what, std::size_t at);
  [[nodiscard]] bool has(char32_t c, std::size_t ahead = 0) const;
  bool take(char32_t c);
  /// The next character, which must be there; `missing` says what it would have been.
  char32_t any(const char* missing);
  [[nodiscard]] bool has_digit() const;
  /// The digits here, without zeros in front of others.
  std::u32string digits();
  /// Throws what was refused first.
  void check() const;

  /// What `\w` matches.
  [[nodiscard]] static CodePointSet word();

  /// A character or a class; a surrogate is one character, though no text has it.
  struct Member {
    CodePointSet set;
    std::optional<char32_t> code;  ///< where it is one character, not a class
  };
  /// What follows a backslash.
  Member escape();
  /// What follows the `u` of an escape.
  char32_t unicode_escape();
  /// What follows the bracket that opens a class, and its end.
  CodePointSet bracket();

  /// The name of a group and the `>` after it; what stands before it is read.
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
