#pragma once

#include <utility>
#include <vector>

#include <tooldecode/text/pattern_reader.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE PatternReader::PatternReader(std::string_view pattern)
    : text_(decode_utf8(pattern)) {
  if (text_.size() > max_characters) {
    throw Error(Errc::limit_exceeded, "", "a pattern of too many characters");
  }
  check_encoding(pattern);
}

TOOLDECODE_INLINE std::string PatternReader::place(std::size_t at) const {
  std::string before;
  for (std::size_t i = 0; i < at; ++i) append_utf8(before, text_[i]);
  return "byte " + std::to_string(before.size());
}

TOOLDECODE_INLINE void PatternReader::fail(const std::string& what, std::size_t at) const {
  throw Error(Errc::malformed_pattern, place(at), what);
}

TOOLDECODE_INLINE void PatternReader::refuse(const std::string& what, std::size_t at) {
  if (!refused_) refused_.emplace(Errc::unsupported_pattern, place(at), what);
}

TOOLDECODE_INLINE bool PatternReader::has(char32_t c, std::size_t ahead) const {
  return at_ + ahead < text_.size() && text_[at_ + ahead] == c;
}

TOOLDECODE_INLINE bool PatternReader::take(char32_t c) {
  if (!has(c)) return false;
  ++at_;
  return true;
}

TOOLDECODE_INLINE char32_t PatternReader::any(const char* missing) {
  if (at_end()) fail(missing);
  return text_[at_++];
}

TOOLDECODE_INLINE bool PatternReader::has_digit() const {
  return !at_end() && text_[at_] >= '0' && text_[at_] <= '9';
}

TOOLDECODE_INLINE std::u32string PatternReader::digits() {
  std::u32string all;
  for (; has_digit(); ++at_) {
    if (all == U"0") all.clear();
    all += text_[at_];
  }
  return all;
}

TOOLDECODE_INLINE void PatternReader::check() const {
  if (refused_) throw *refused_;
}

TOOLDECODE_INLINE CodePointSet PatternReader::word() {
  return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
}

TOOLDECODE_INLINE PatternReader::Member PatternReader::escape() {
  const std::size_t begin = at_ - 1;
  const char32_t c        = any("a backslash ends the pattern");
  const auto of           = [](CodePointSet set) { return Member{std::move(set), std::nullopt}; };
  switch (c) {
    case 'd':
      return of({{'0', '9'}});
    case 'D':
      return of(~CodePointSet{{'0', '9'}});
    case 'w':
      return of(word());
    case 'W':
      return of(~word());
    case 's':
      return of(space());
    case 'S':
      return of(~space());
    case 't':
      return one('\t');
    case 'n':
      return one('\n');
    case 'r':
      return one('\r');
    case 'f':
      return one('\f');
    case 'v':
      return one('\v');
    case '0':
      if (has_digit()) fail("an octal escape", begin);
      return one(0);
    case 'x':
      return one(hex(2));
    case 'c': {
      const char32_t letter = any("'\\c' needs a letter") | 0x20;
      if (letter < 'a' || letter > 'z') fail("'\\c' needs a letter", begin);
      return one(letter & 0x1F);
    }
    case 'u':
      return one(unicode_escape());
    case 'p':
      return of(property(begin));
    case 'P':
      return of(~property(begin));
    default:
      break;
  }
  if (c < 0x80 && c != '_' && word().contains(c)) fail("an unknown escape", begin);
  return one(c);
}

TOOLDECODE_INLINE char32_t PatternReader::unicode_escape() {
  if (take('{')) {
    char32_t value = hex(1);
    while (!take('}')) {
      value = value * 16 + hex(1);
      if (value > CodePointSet::last_code_point) fail("a code point past U+10FFFF");
    }
    return value;
  }
  const char32_t high = hex(4);
  if (high < 0xD800 || high > 0xDBFF || !has('\\') || !has('u', 1) || has('{', 2)) return high;
  const std::size_t after = at_;
  at_ += 2;
  const char32_t low = hex(4);
  if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  at_ = after;  // a lone surrogate
  return high;
}

TOOLDECODE_INLINE CodePointSet PatternReader::bracket() {
  const std::size_t begin = at_ - 1;
  const bool negated      = take('^');
  std::vector<CodePointSet::Range> all;
  const auto insert = [&](const CodePointSet& set) {
    BuildBudget::spend(set.ranges().size());
    all.insert(all.end(), set.ranges().begin(), set.ranges().end());
  };
  const auto member = [&] {
    if (at_end()) fail("a class is not closed", begin);
    const char32_t c = text_[at_++];
    if (c != '\\') return one(c);
    return take('b') ? one('\b') : escape();
  };
  while (!take(']')) {
    const std::size_t from = at_;
    const Member first     = member();
    if (has('-') && at_ + 1 < text_.size() && !has(']', 1)) {
      ++at_;
      const Member last = member();
      if (first.code && last.code) {
        if (*first.code > *last.code) fail("a range whose ends are out of order", from);
        all.emplace_back(*first.code, *last.code);
        continue;
      }
      all.emplace_back('-', '-');
      insert(last.set);
    }
    insert(first.set);
  }
  const CodePointSet set(std::move(all));
  return negated ? ~set : set;
}

TOOLDECODE_INLINE std::u32string PatternReader::group_name() {
  const std::size_t begin = at_;
  std::u32string name;
  while (!take('>')) {
    char32_t c = any("a group's name is not closed");
    if (c == '\\') {
      if (!take('u')) fail("a group's name is no identifier", begin);
      c = unicode_escape();
    }
    name += c;
    if (!is_identifier(c, name.size() == 1)) fail("a group's name is no identifier", begin);
  }
  if (name.empty()) fail("a group's name is empty", begin);
  return name;
}

TOOLDECODE_INLINE bool PatternReader::is_identifier(char32_t c, bool is_first) {
  if (c == '$' || c == '_' || (c < 0x80 && word().contains(c))) {
    return !is_first || c < '0' || c > '9';
  }
  if (c < 0x80) return false;
  static const CodePointSet begins  = *unicode_property("L") | *unicode_property("Nl");
  static const CodePointSet follows = *unicode_property("Mn") | *unicode_property("Mc") |
                                      *unicode_property("Nd") | *unicode_property("Pc") |
                                      CodePointSet{{0x200C, 0x200D}};
  return begins.contains(c) || (!is_first && follows.contains(c));
}

TOOLDECODE_INLINE void PatternReader::check_encoding(std::string_view pattern) const {
  std::string again;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    const std::size_t begin = again.size();
    append_utf8(again, text_[i]);
    if (pattern.substr(begin, again.size() - begin) != std::string_view(again).substr(begin)) {
      fail("a pattern that is not UTF-8", i);
    }
  }
}

TOOLDECODE_INLINE CodePointSet PatternReader::space() {
  // ECMA-262's white space and line terminators: with the byte order mark, without U+0085.
  return (unicode_space() & ~CodePointSet{{0x85, 0x85}}) | CodePointSet{{0xFEFF, 0xFEFF}};
}

TOOLDECODE_INLINE char32_t PatternReader::hex(int digits) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const auto digit = hex_digit(any("hexadecimal digits are missing"));
    if (!digit) fail("a hexadecimal digit is missing", at_ - 1);
    value = value * 16 + *digit;
  }
  return value;
}

TOOLDECODE_INLINE CodePointSet PatternReader::property(std::size_t begin) {
  if (!take('{')) fail("'\\p' needs a property in braces", begin);
  std::string name;
  while (!has('}')) append_utf8(name, any("a property is not closed"));
  ++at_;
  const std::optional<CodePointSet> set = unicode_property(name);
  if (set) return *set;
  if (!is_property_name(name)) fail("there is no property '" + name + "'", begin);
  refuse("the property '" + name + "' is not supported", begin);
  return {};
}

}  // namespace tooldecode::text
