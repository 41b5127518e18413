/// \file
/// StringEscape: reads an escape of a string literal byte by byte, and writes strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/value_syntax.hpp>

namespace tooldecode::text {

/// The part of an escape read so far, after its backslash.
///
/// JSON: the short forms, `\uXXXX`, and two surrogates in that form. Python: the short forms,
/// `\xXX`, `\uXXXX` and `\UXXXXXXXX`, but not octal and named escapes. Hexadecimal digits may be
/// upper or lower case.
///
/// \par Complexity  O(1) per call
/// \par Source      RFC 8259, section 7; Python language reference, section 2.4.1
class StringEscape {
 public:
  /// The state just after the backslash.
  explicit StringEscape(ValueSyntax syntax) : syntax_(syntax) {}
  /// Restores the state from `value` and `places` of another object.
  StringEscape(ValueSyntax syntax, std::uint32_t value, std::uint32_t places);

  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }
  [[nodiscard]] std::uint32_t places() const noexcept { return read_ | places_ << 8; }

  /// Reads one more byte; false if it cannot follow.
  [[nodiscard]] bool read(std::uint8_t byte);

  /// The character, once the escape is complete.
  [[nodiscard]] std::optional<char32_t> character() const noexcept;
  /// Whether the escape can still become this character.
  [[nodiscard]] bool may_become(char32_t c) const noexcept;
  [[nodiscard]] ByteSet next() const;
  /// The text read so far, with lower-case digits, for an incomplete escape.
  [[nodiscard]] std::string text() const;

  /// Whether no common writer escapes a character: ASCII, except what must be escaped, PHP's `\/`,
  /// and what writers of HTML and JavaScript escape.
  [[nodiscard]] static bool is_plain(char32_t c) noexcept;

  /// Appends a character as in a string literal: itself if possible, else its short form, else its
  /// number.
  ///
  /// \param quote  of the literal; 0 for a form that is valid within either quote
  static void append(std::string& out, char32_t c, ValueSyntax syntax, char quote);
  /// A quoted text, each character as `append` writes it.
  [[nodiscard]] static std::string quoted(std::string_view text, ValueSyntax syntax, char quote);

 private:
  static constexpr std::string_view hexadecimal = "0123456789abcdef";
  static constexpr std::uint32_t pair           = 10;  // two numbers, with a backslash and a u
  static constexpr std::uint32_t high_digits = 4, low_digits = 6;

  // The letters of the short forms that writers use, and their meanings.
  static std::pair<std::string_view, std::string_view> short_forms(ValueSyntax syntax);
  // All letters, and their meanings.
  static std::string_view letters(ValueSyntax syntax);
  static std::string_view meanings(ValueSyntax syntax);

  bool read_kind(char c);

  ValueSyntax syntax_;
  std::uint32_t value_  = 0;  // of the digits read
  std::uint32_t read_   = 0;
  std::uint32_t places_ = 0;  // bytes after the first letter; 0 before that letter
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/string_escape.ipp>
#endif
