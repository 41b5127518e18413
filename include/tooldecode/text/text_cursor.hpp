/// \file
/// TextCursor: a place in a text, and what the readers of grammars take from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>

namespace tooldecode::text {

/// The base of readers whose errors have one of two codes.
///
/// \par Complexity  O(bytes read)
/// \par Errors      Error{malformed, unsupported} with the byte
template <Errc malformed, Errc unsupported>
class TextCursor {
 protected:
  explicit TextCursor(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }
  [[noreturn]] static void fail(const std::string& what, std::size_t at) {
    throw Error(malformed, "byte " + std::to_string(at), what);
  }
  [[noreturn]] static void refuse(const std::string& what, std::size_t at) {
    throw Error(unsupported, "byte " + std::to_string(at), what);
  }

  /// A byte; 0 past the end.
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool has(std::string_view next) const {
    return text_.substr(at_, next.size()) == next;
  }
  bool take(std::string_view next) {
    if (!has(next)) return false;
    at_ += next.size();
    return true;
  }
  /// The next character.
  char32_t character() {
    const bool is_ascii = at_ < text_.size() && static_cast<std::uint8_t>(text_[at_]) < 0x80;
    if (is_ascii) return static_cast<char32_t>(text_[at_++]);
    const char32_t c = decode_utf8(text_.substr(at_, 4))[0];
    std::string again;
    append_utf8(again, c);
    if (!take(again)) fail("not UTF-8");
    return c;
  }
  /// A count in decimal digits.
  std::uint32_t number() {
    const std::size_t begin = at_;
    std::uint64_t value     = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + static_cast<std::uint64_t>(peek() - '0');
      if (value > std::numeric_limits<std::int32_t>::max()) {
        throw Error(Errc::limit_exceeded, "byte " + std::to_string(begin), "a count past 2^31 - 1");
      }
    }
    if (at_ == begin) fail("a number, 0 or more, is missing");
    return static_cast<std::uint32_t>(value);
  }
  /// A number of so many hexadecimal digits.
  char32_t hex(std::size_t digits) {
    std::uint32_t value = 0;
    for (; digits > 0; --digits, ++at_) {
      const auto digit = hex_digit(peek());
      if (!digit) fail("a hexadecimal digit is missing");
      value = value << 4 | *digit;
    }
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace tooldecode::text
