#pragma once

#include <algorithm>

#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE StringEscape::StringEscape(ValueSyntax syntax, std::uint32_t value,
                                             std::uint32_t places)
    : syntax_(syntax), value_(value), read_(places & 0xFF), places_(places >> 8) {}

TOOLDECODE_INLINE bool StringEscape::read(std::uint8_t byte) {
  const auto c = static_cast<char>(byte);
  if (places_ == 0) return read_kind(c);
  if (read_ == places_) return false;
  if (places_ == pair && read_ < low_digits) return c == "\\u"[read_++ - high_digits];
  const std::size_t digit = hexadecimal.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
  if (digit == std::string_view::npos) return false;
  value_ = value_ << 4 | static_cast<std::uint32_t>(digit);
  ++read_;
  const std::uint32_t shift = 4 * (places_ - read_);
  if (places_ == pair) {
    const std::uint32_t first = value_ << shift & 0xFFFF, last = first | ((1U << shift) - 1);
    return last >= 0xDC00 && first <= 0xDFFF;
  }
  if (shift != 0) return true;
  if (syntax_ == ValueSyntax::json && value_ >= 0xD800 && value_ <= 0xDBFF) {
    places_ = pair;
    return true;
  }
  return value_ <= CodePointSet::last_code_point && !(value_ >= 0xD800 && value_ <= 0xDFFF);
}

TOOLDECODE_INLINE std::optional<char32_t> StringEscape::character() const noexcept {
  if (places_ == 0 || read_ < places_) return std::nullopt;
  if (places_ != pair) return value_;
  return 0x10000 + ((value_ >> 16 & 0x3FF) << 10) + (value_ & 0x3FF);
}

TOOLDECODE_INLINE bool StringEscape::may_become(char32_t c) const noexcept {
  if (places_ == 0) return true;
  if (read_ == places_) return character() == c;
  const bool is_pair  = c > 0xFFFF && syntax_ == ValueSyntax::json;
  const char32_t high = 0xD800 + ((c - 0x10000) >> 10), low = 0xDC00 + (c & 0x3FF);
  if (places_ != pair) {
    const std::uint64_t whole = is_pair ? high : c;
    return whole >> 4 * (places_ - read_) == value_;
  }
  const std::uint32_t left = places_ - (read_ < low_digits ? low_digits : read_);
  return is_pair && (high << 16 | low) >> 4 * left == value_;
}

TOOLDECODE_INLINE ByteSet StringEscape::next() const {
  if (places_ == 0) {
    ByteSet all = ByteSet::of(letters(syntax_));
    return all | ByteSet::of(syntax_ == ValueSyntax::json ? "u" : "xuU");
  }
  if (read_ == places_) return {};
  if (places_ == pair && read_ < low_digits) {
    return ByteSet::of(std::string_view("\\u").substr(read_ - high_digits, 1));
  }
  return ByteSet::of("0123456789abcdefABCDEF");
}

TOOLDECODE_INLINE std::string StringEscape::text() const {
  std::string bytes = "\\";
  if (places_ == 0) return bytes;
  bytes += places_ == 2 ? 'x' : places_ == 8 ? 'U' : 'u';
  const auto digits = [&](std::uint32_t count, std::uint32_t value) {
    for (std::uint32_t i = count; i-- > 0;) bytes += hexadecimal[value >> 4 * i & 15];
  };
  if (places_ != pair) {
    digits(read_, value_);
  } else if (read_ < low_digits) {
    digits(high_digits, value_);
    bytes.append("\\u", read_ - high_digits);
  } else {
    digits(high_digits, value_ >> 4 * (read_ - low_digits));
    bytes += "\\u";
    digits(read_ - low_digits, value_);
  }
  return bytes;
}

TOOLDECODE_INLINE bool StringEscape::is_plain(char32_t c) noexcept {
  constexpr std::string_view escaped = "\"'\\/&<>=+`";
  return c >= 0x20 && c < 0x7F && escaped.find(static_cast<char>(c)) == std::string_view::npos;
}

TOOLDECODE_INLINE void StringEscape::append(std::string& out, char32_t c, ValueSyntax syntax,
                                            char quote) {
  const bool python    = syntax == ValueSyntax::python;
  const auto is_quote  = [&](char one) { return quote == one || (quote == 0 && python); };
  const bool is_closed = (c == '"' && (!python || is_quote('"'))) || (c == '\'' && is_quote('\''));
  if (c == '\\' || is_closed) {
    out += {'\\', static_cast<char>(c)};
  } else if (c >= 0x20) {
    append_utf8(out, c);
  } else if (const auto i = short_forms(syntax).second.find(static_cast<char>(c));
             c != 0 && i != std::string_view::npos) {
    out += {'\\', short_forms(syntax).first[i]};
  } else {
    out += python ? "\\x" : "\\u00";
    out += {hexadecimal[c >> 4], hexadecimal[c & 15]};
  }
}

TOOLDECODE_INLINE std::string StringEscape::quoted(std::string_view text, ValueSyntax syntax,
                                                   char quote) {
  std::string result(1, quote);
  const bool is_plain = std::ranges::all_of(
      text, [&](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\'' && c != '\\'; });
  if (is_plain) return result.append(text) + quote;
  for (const char32_t c : decode_utf8(text)) append(result, c, syntax, quote);
  return result + quote;
}

TOOLDECODE_INLINE std::pair<std::string_view, std::string_view> StringEscape::short_forms(
    ValueSyntax syntax) {
  if (syntax == ValueSyntax::json) return {"bfnrt", "\b\f\n\r\t"};
  return {"nrt", "\n\r\t"};
}

TOOLDECODE_INLINE std::string_view StringEscape::letters(ValueSyntax syntax) {
  return syntax == ValueSyntax::json ? "\"\\/bfnrt" : "\\'\"abfnrtv";
}

TOOLDECODE_INLINE std::string_view StringEscape::meanings(ValueSyntax syntax) {
  return syntax == ValueSyntax::json ? "\"\\/\b\f\n\r\t" : "\\'\"\a\b\f\n\r\t\v";
}

TOOLDECODE_INLINE bool StringEscape::read_kind(char c) {
  const bool python = syntax_ == ValueSyntax::python;
  if (c == 'u') return (places_ = 4) != 0;
  if (python && (c == 'x' || c == 'U')) return (places_ = c == 'x' ? 2 : 8) != 0;
  const auto letter = letters(syntax_).find(c);
  if (letter == std::string_view::npos) return false;
  value_  = static_cast<std::uint8_t>(meanings(syntax_)[letter]);
  places_ = read_ = 1;
  return true;
}

}  // namespace tooldecode::text
