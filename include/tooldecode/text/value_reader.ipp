#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <unordered_set>
#include <utility>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::text {

namespace detail {

// Removes what follows the first elements.
template <class T>
std::vector<T> taken(std::vector<T>& from, std::size_t first) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<T> last(std::make_move_iterator(begin), std::make_move_iterator(from.end()));
  from.erase(begin, from.end());
  return last;
}

// The first byte of a string's text that is not copied as it is: a quote, a backslash, a control
// character, or a part of a character that is not ASCII. Words are tested as a whole.
TOOLDECODE_INLINE const char* find_special(const char* first, const char* last, char quote) {
  constexpr std::uint64_t ones = 0x0101010101010101ULL, highs = 0x80 * ones;
  const auto has_zero        = [](std::uint64_t word) { return (word - ones) & ~word & highs; };
  const std::uint64_t quotes = ones * static_cast<unsigned char>(quote);
  for (std::uint64_t word; last - first >= 8; first += 8) {
    std::memcpy(&word, first, sizeof word);
    const std::uint64_t special = (word & highs) | ((word - 0x20 * ones) & ~word & highs) |
                                  has_zero(word ^ quotes) | has_zero(word ^ '\\' * ones);
    if (special != 0) break;
  }
  return std::find_if(first, last, [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x80 || c == quote || c == '\\';
  });
}

}  // namespace detail

TOOLDECODE_INLINE void ValueReader::skip_space() noexcept {
  while (!at_end() && is_space(text_[at_])) ++at_;
}

TOOLDECODE_INLINE bool ValueReader::accept(std::string_view bytes) noexcept {
  if (!rest().starts_with(bytes)) return false;
  at_ += bytes.size();
  return true;
}

TOOLDECODE_INLINE void ValueReader::expect(std::string_view bytes) {
  if (!accept(bytes)) fail("expected '" + std::string(bytes) + "'");
}

TOOLDECODE_INLINE void ValueReader::fail_at(std::size_t byte, std::string_view what) const {
  throw Error(code_, "byte " + std::to_string(byte), what);
}

TOOLDECODE_INLINE ValueReader::Json ValueReader::value() {
  skip_space();
  if (at_end()) fail("expected a value");
  const char c = text_[at_];
  if (c == '"' || (c == '\'' && python())) return Json(string());
  if (c == '{') return object();
  if (c == '[' || (c == '(' && python())) return array();
  if (is_digit(c) || c == '-' || (python() && (c == '+' || c == '.'))) return number();
  return word();
}

TOOLDECODE_INLINE std::string ValueReader::string() {
  std::string result;
  if (at_end() || !(text_[at_] == '"' || (text_[at_] == '\'' && python()))) {
    fail("expected a string");
  }
  do {
    append_string(result);
    if (!python()) break;
    const std::size_t end = at_;
    skip_space();
    if (!at_end() && (text_[at_] == '"' || text_[at_] == '\'')) continue;
    at_ = end;
    break;
  } while (true);
  return result;
}

TOOLDECODE_INLINE bool ValueReader::is_space(char c) const noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || (c == '\f' && python());
}

TOOLDECODE_INLINE ValueReader::Json ValueReader::object() {
  const Nesting nesting(*this);
  const std::size_t first = members_.size();
  std::unordered_set<std::size_t> hashes;  // of keys, if there are many
  const auto find = [&](const std::string& key) {
    return std::find_if(members_.begin() + static_cast<std::ptrdiff_t>(first), members_.end(),
                        [&](const auto& member) { return member.first == key; });
  };
  const auto is_new_key = [&](const std::string& key) {
    constexpr std::size_t few = 16;
    const std::hash<std::string> hash;
    if (members_.size() - first >= few) {
      if (hashes.empty()) {
        for (std::size_t i = first; i < members_.size(); ++i)
          hashes.insert(hash(members_[i].first));
      }
      if (hashes.insert(hash(key)).second) return true;
    }
    return find(key) == members_.end();
  };
  skip(1);
  skip_space();
  bool ended = accept('}');
  while (!ended) {
    const std::size_t start = at_;
    std::string key         = string();
    const bool is_new       = is_new_key(key);
    if (!is_new && unique_keys_) fail_at(start, "the key '" + key + "' occurs twice");
    skip_space();
    expect_or(':', "expected ':'");
    Json member = value();
    if (is_new) {
      members_.emplace_back(std::move(key), std::move(member));
    } else {
      find(key)->second = std::move(member);
    }
    skip_space();
    ended = accept('}');
    if (ended) break;
    expect_or(',', "expected ',' or '}'");
    skip_space();
    ended = python() && accept('}');
  }
  return Json(detail::taken(members_, first));
}

TOOLDECODE_INLINE ValueReader::Json ValueReader::array() {
  const Nesting nesting(*this);
  const std::size_t first = items_.size();
  const bool round        = text_[at_] == '(';
  const char end          = round ? ')' : ']';
  skip(1);
  skip_space();
  bool ended = accept(end);
  while (!ended) {
    items_.push_back(value());
    skip_space();
    ended = accept(end);
    if (ended && round && items_.size() == first + 1) {
      Json only = std::move(items_.back());
      items_.pop_back();
      return only;
    }
    if (ended) break;
    expect_or(',', round ? "expected ',' or ')'" : "expected ',' or ']'");
    skip_space();
    ended = python() && accept(end);
  }
  return Json(detail::taken(items_, first));
}

TOOLDECODE_INLINE void ValueReader::expect_or(char byte, std::string_view what) {
  if (!accept(byte)) fail(what);
}

TOOLDECODE_INLINE ValueReader::Json ValueReader::word() {
  const std::pair<std::string_view, Json> words[] = {{python() ? "True" : "true", true},
                                                     {python() ? "False" : "false", false},
                                                     {python() ? "None" : "null", nullptr}};
  for (const auto& [text, meaning] : words) {
    if (!rest().starts_with(text)) continue;
    skip(text.size());
    end_of_word();
    return meaning;
  }
  fail("expected a value");
}

TOOLDECODE_INLINE ValueReader::Json ValueReader::number() {
  const std::size_t start = at_;
  std::string json;
  if (accept('-')) {
    json = "-";
  } else if (python()) {
    accept('+');
  }
  if (python() && at_ != start) skip_space();
  const std::string whole = digits();
  bool integral           = true;
  std::string tail;
  if (accept('.')) {
    integral                   = false;
    const std::string fraction = digits();
    if (fraction.empty() && !(python() && !whole.empty())) fail("expected a digit");
    tail = "." + (fraction.empty() ? "0" : fraction);
  }
  if (whole.empty() && !(python() && !integral)) fail("expected a digit");
  if (accept('e') || accept('E')) {
    integral = false;
    tail += "e";
    if (accept('-')) {
      tail += "-";
    } else {
      accept('+');
    }
    const std::string exponent = digits();
    if (exponent.empty()) fail("expected a digit");
    tail += exponent;
  }
  const std::size_t zeros = std::min(whole.find_first_not_of('0'), whole.size());
  const bool leading_zero = whole.size() > 1 && zeros > 0;
  if (leading_zero && !(python() && (!integral || zeros == whole.size()))) {
    fail_at(start, "a number does not begin with 0");
  }
  end_of_word();
  json += zeros == whole.size() ? "0" : whole.substr(zeros);
  json += tail;
  auto read = find_number(json);
  if (!read) fail_at(start, "the number is too large");
  if (keep_integers_ && integral && read->is_number_float()) return Json::exact(std::move(json));
  return keep_numbers_ ? ExactNumber::keep(std::move(json), std::move(*read)) : *read;
}

TOOLDECODE_INLINE std::string ValueReader::digits() {
  const std::size_t start = at_;
  while (!at_end() && is_digit(text_[at_])) ++at_;
  return std::string(text_.substr(start, at_ - start));
}

TOOLDECODE_INLINE void ValueReader::end_of_word() const {
  if (at_end()) return;
  const char c     = text_[at_];
  const bool ascii = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
  if (ascii || c == '_' || static_cast<unsigned char>(c) >= 0x80) fail("expected a separator");
}

TOOLDECODE_INLINE void ValueReader::append_string(std::string& result) {
  const char quote  = text_[at_];
  const bool triple = python() && rest().starts_with(std::string(3, quote));
  const std::string_view end =
      triple ? rest().substr(0, 3) : rest().substr(0, 1);  // equals the opening quotes
  skip(end.size());
  while (true) {
    const char* const first = text_.data() + at_;
    const char* const last  = detail::find_special(first, text_.data() + text_.size(), quote);
    result.append(first, last);
    skip(static_cast<std::size_t>(last - first));
    if (triple ? accept(end) : accept(quote)) break;
    if (at_end()) fail("the string has no end");
    const char c = text_[at_];
    if (c == '\\') {
      python() ? python_escape(result) : json_escape(result);
    } else if (c == '\r' && triple) {
      accept("\r\n") || accept("\r");  // Python reads every line end as \n
      result.push_back('\n');
    } else if (python() ? (c == '\0' || (!triple && (c == '\n' || c == '\r')))
                        : static_cast<unsigned char>(c) < 0x20) {
      fail("a control character must be escaped");
    } else {
      const auto point = find_code_point(text_, at_);
      if (!point) fail("the string is not UTF-8");
      result.append(text_.substr(at_, point->bytes));
      skip(point->bytes);
    }
  }
}

TOOLDECODE_INLINE void ValueReader::json_escape(std::string& result) {
  const std::size_t start = at_;
  skip(1);
  if (at_end()) fail("the string has no end");
  constexpr std::string_view from = "\"\\/bfnrt";
  constexpr std::string_view to   = "\"\\/\b\f\n\r\t";
  if (const auto i = from.find(text_[at_]); i != std::string_view::npos) {
    skip(1);
    result.push_back(to[i]);
    return;
  }
  if (!accept('u')) fail_at(start, "an unknown escape");
  std::uint32_t value      = hexadecimal(4);
  const std::size_t second = at_;
  if (value >= 0xD800 && value <= 0xDBFF && accept("\\u")) {
    const std::uint32_t low = hexadecimal(4);
    if (low >= 0xDC00 && low <= 0xDFFF) {
      value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    } else {
      at_ = second;  // another character's
    }
  }
  if (is_surrogate(value)) {
    if (!replaces_half_pairs_) fail_at(start, "half of a surrogate pair");
    value = 0xFFFD;
  }
  append_utf8(result, value);
}

TOOLDECODE_INLINE void ValueReader::python_escape(std::string& result) {
  const std::size_t start = at_;
  skip(1);
  if (at_end()) fail("the string has no end");
  constexpr std::string_view from = "\\'\"abfnrtv";
  constexpr std::string_view to   = "\\'\"\a\b\f\n\r\t\v";
  const char c                    = text_[at_];
  if (const auto i = from.find(c); i != std::string_view::npos) {
    skip(1);
    result.push_back(to[i]);
  } else if (c >= '0' && c <= '7') {
    std::uint32_t value = 0;
    for (int digits = 0; digits < 3 && !at_end() && text_[at_] >= '0' && text_[at_] <= '7';
         ++digits, ++at_) {
      value = 8 * value + static_cast<std::uint32_t>(text_[at_] - '0');
    }
    append_utf8(result, value);
  } else if (c == 'x' || c == 'u' || c == 'U') {
    skip(1);
    const std::uint32_t value = hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    if (value > CodePointSet::last_code_point || is_surrogate(value)) {
      fail_at(start, "the escape is no code point");
    }
    append_utf8(result, value);
  } else if (c == 'N') {
    fail_at(start, "named characters are not supported");
  } else if (accept("\r\n") || accept("\r") || accept("\n")) {
    // a continued line
  } else {
    result.push_back('\\');  // as in Python: an unknown escape is kept
  }
}

TOOLDECODE_INLINE std::uint32_t ValueReader::hexadecimal(std::size_t digits) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at_) {
    const auto digit = hex_digit(at_end() ? '\0' : text_[at_]);
    if (!digit) fail("expected a hexadecimal digit");
    value = value << 4 | *digit;
  }
  return value;
}

TOOLDECODE_INLINE JsonValue ValueReader::only_value() {
  JsonValue result = value();
  expect_end();
  return result;
}

TOOLDECODE_INLINE void ValueReader::expect_end(std::string_view otherwise) {
  skip_space();
  if (!at_end()) fail(otherwise);
}

TOOLDECODE_INLINE JsonValue parse_json(std::string_view text, Errc code) {
  return ValueReader(text, ValueReader::Language::json, code).only_value();
}

TOOLDECODE_INLINE JsonValue parse_json_file(std::string_view text, const std::string& place) {
  ValueReader reader(text, ValueReader::Language::json, Errc::malformed_json);
  reader.allow_repeated_keys();
  reader.accept("\xEF\xBB\xBF");
  try {
    return reader.only_value();
  } catch (const Error& error) {
    const std::string_view what = error.what();
    throw Error(error.code(), place + error.where(),
                "is not JSON: " + std::string(what.substr(what.find(": ") + 2)));
  }
}

TOOLDECODE_INLINE std::optional<JsonValue> find_json(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TOOLDECODE_INLINE JsonValue parse_exact_json(std::string_view text, Errc code) {
  ValueReader reader(text, ValueReader::Language::json, code);
  reader.keep_numbers();
  return reader.only_value();
}

TOOLDECODE_INLINE JsonValue parse_python_literal(std::string_view text) {
  return ValueReader(text, ValueReader::Language::python, Errc::malformed_call).only_value();
}

TOOLDECODE_INLINE ValueReader::Nesting::Nesting(ValueReader& reader) : reader_(reader) {
  if (++reader_.depth_ > max_depth) {
    throw Error(Errc::limit_exceeded, "byte " + std::to_string(reader_.at_),
                "values are nested deeper than " + std::to_string(max_depth) + " levels");
  }
}

TOOLDECODE_INLINE ValueReader::Nesting::~Nesting() {
  --reader_.depth_;
}

}  // namespace tooldecode::text

namespace tooldecode {

TOOLDECODE_INLINE JsonValue parse_json_value(std::string_view text) {
  return text::parse_exact_json(text);
}

}  // namespace tooldecode
