#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <tooldecode/ebnf/lark_pattern.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE void write_pattern(char32_t c, std::string& out) {
  static constexpr char digits[] = "0123456789ABCDEF";
  out += "\\u{";
  for (int shift = 20; shift >= 0; shift -= 4) out += digits[c >> shift & 15];
  out += '}';
}

TOOLDECODE_INLINE void write_pattern(const text::CodePointSet& set, std::string& out) {
  out += '[';
  for (const auto& [first, last] : set.ranges()) {
    write_pattern(first, out);
    out += '-';
    write_pattern(last, out);
  }
  out += ']';
}

TOOLDECODE_INLINE text::CodePointSet either_case(const text::CodePointSet& set) {
  using text::CodePointSet;
  static const CodePointSet cased = [] {
    CodePointSet all = *text::unicode_property("Lu") | *text::unicode_property("Ll") |
                       *text::unicode_property("Lt");
    // Cased letters and marks of other categories.
    all = all | CodePointSet{{0x345, 0x345}, {0x2160, 0x217F}, {0x24B6, 0x24E9}};
    return all & CodePointSet{{0x80, CodePointSet::last_code_point}};
  }();
  // Characters that fold to ASCII letters: long s and the Kelvin sign.
  static constexpr std::array<std::pair<char32_t, char32_t>, 2> signs{
      {{U's', 0x17F}, {U'k', 0x212A}}};
  const CodePointSet beyond = set & cased;
  CodePointSet known;
  for (const auto& [letter, sign] : signs) known = known | CodePointSet{{sign, sign}};
  if (!(beyond & ~known).empty() && beyond != cased) {
    throw Error(Errc::unsupported_pattern, "",
                "letters beyond ASCII in either case are not supported");
  }
  std::vector<CodePointSet::Range> more = set.ranges();
  for (char32_t c = U'a'; c <= U'z'; ++c) {
    const char32_t capital = c - 0x20;
    bool is_in             = set.contains(c) || set.contains(capital);
    for (const auto& [letter, sign] : signs) is_in = is_in || (letter == c && set.contains(sign));
    if (!is_in) continue;
    more.emplace_back(c, c), more.emplace_back(capital, capital);
    for (const auto& [letter, sign] : signs) {
      if (letter == c) more.emplace_back(sign, sign);
    }
  }
  return CodePointSet(std::move(more));
}

TOOLDECODE_INLINE LarkPattern::LarkPattern(std::string_view text, std::string_view flags)
    : TextCursor(text) {
  for (const char flag : flags) set_flag(flag, true, 0);
}

TOOLDECODE_INLINE std::string LarkPattern::read() {
  // Anchors at the ends of a whole match have no effect.
  while (take("^") || take("\\A")) {}
  alternatives();
  if (at_ < text_.size()) fail("unmatched ')'", at_);
  return std::move(out_);
}

TOOLDECODE_INLINE void LarkPattern::skip() {
  while (flags_.is_spaced && at_ < text_.size()) {
    if (peek() == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
      continue;
    }
    const std::size_t begin = at_;
    static const Set space  = text::unicode_space();
    if (!space.contains(character())) {
      at_ = begin;
      return;
    }
  }
}

TOOLDECODE_INLINE void LarkPattern::set_flag(char flag, bool is_on, std::size_t at) {
  switch (flag) {
    case 'i':
      flags_.ignores_case = is_on;
      return;
    case 's':
      flags_.dot_is_all = is_on;
      return;
    case 'x':
      flags_.is_spaced = is_on;
      return;
    case 'u':
      flags_.is_unicode = is_on;
      return;
    case 'm':  // concerns anchors, which are allowed at the ends only
    case 'U':  // concerns greediness, which does not change whole matches
      return;
    default:
      refuse(std::string("the flag '") + flag + "' is not supported", at);
  }
}

TOOLDECODE_INLINE void LarkPattern::alternatives() {
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, "byte " + std::to_string(at_), "groups nested too deeply");
  }
  const Flags outer = flags_;
  out_ += "(?:";
  for (;;) {
    sequence();
    if (!take("|")) break;
    out_ += '|';
  }
  out_ += ')';
  flags_ = outer;
  --depth_;
}

TOOLDECODE_INLINE void LarkPattern::sequence() {
  for (skip(); at_ < text_.size() && peek() != '|' && peek() != ')'; skip()) {
    const std::size_t begin = out_.size();
    if (atom()) quantifiers(begin);
  }
}

TOOLDECODE_INLINE bool LarkPattern::atom() {
  const std::size_t begin = at_;
  switch (peek()) {
    case '(':
      return group();
    case '[':
      write_characters(bracket(), begin);
      return true;
    case '.':
      ++at_;
      write_characters(flags_.dot_is_all ? Set::all() : ~Set{{'\n', '\n'}}, begin);
      return true;
    case '*':
    case '+':
    case '?':
      fail("a repetition follows nothing", begin);
    case '{':
      fail("a repetition follows nothing", begin);
    case '^':
      refuse("an anchor inside an expression is not supported", begin);
    case '$':
      ++at_;
      return end_anchor(begin);
    default:
      break;
  }
  if (take("\\z")) return end_anchor(begin);
  if (take("\\")) {
    const bool is_class = letter_class(peek(), at_).has_value();
    const Set set       = escape(false);
    is_class ? write_characters(set, begin) : write_pattern(set, out_);
  } else {
    write_pattern(folded(character()), out_);
  }
  return true;
}

TOOLDECODE_INLINE void LarkPattern::write_characters(const Set& set, std::size_t at) {
  check_ascii(set, at);
  write_pattern(set, out_);
}

TOOLDECODE_INLINE void LarkPattern::check_ascii(const Set& set, std::size_t at) const {
  if (flags_.is_unicode || (set & ~Set{{0, 0x7F}}).empty()) return;
  refuse("without the flag 'u' a class beyond ASCII is one of bytes", at);
}

TOOLDECODE_INLINE bool LarkPattern::end_anchor(std::size_t begin) const {
  if (at_ < text_.size()) refuse("an anchor inside an expression is not supported", begin);
  return false;
}

TOOLDECODE_INLINE bool LarkPattern::group() {
  const std::size_t begin = at_++;
  if (!take("?")) return inside(begin);
  if (has("=") || has("!") || has("<=") || has("<!")) {
    refuse("look-around is not supported", begin);
  }
  if (take("P<") || take("<")) {
    const std::size_t close = text_.find('>', at_);
    if (close == std::string_view::npos) fail("a group's name is malformed", at_);
    const std::string_view given = text_.substr(at_, close - at_);
    if (!is_group_name(given)) fail("a group's name is malformed", at_);
    if (!names_.emplace(given).second) fail("two groups have one name", at_);
    at_ = close + 1;
    return inside(begin);
  }
  const Flags outer = flags_;
  bool is_on        = true;
  std::string seen;
  while (!has(":") && !has(")")) {
    if (at_ >= text_.size()) fail("a group is not closed", begin);
    if (take("-")) {
      if (!std::exchange(is_on, false)) fail("flags are turned off twice", begin);
      continue;
    }
    const std::size_t at = at_++;
    if (seen.find(text_[at]) != seen.npos) fail("a flag is named twice", at);
    seen += text_[at];
    set_flag(text_[at], is_on, at);
  }
  if (text_[at_ - 1] == '-' || (seen.empty() && has(")"))) fail("a flag is missing", at_);
  if (take(")")) return false;  // applies to the end of the enclosing group
  ++at_;
  (void)inside(begin);
  flags_ = outer;
  return true;
}

TOOLDECODE_INLINE bool LarkPattern::is_group_name(std::string_view name) {
  static const Set letters = *text::unicode_property("L") | Set{{'_', '_'}};
  static const Set others =
      letters | *text::unicode_property("N") | Set{{'.', '.'}, {'[', '['}, {']', ']'}};
  const std::u32string all = text::decode_utf8(name);
  return !all.empty() && letters.contains(all[0]) &&
         std::all_of(all.begin(), all.end(), [](char32_t c) { return others.contains(c); });
}

TOOLDECODE_INLINE bool LarkPattern::inside(std::size_t begin) {
  alternatives();
  if (!take(")")) fail("a group is not closed", begin);
  return true;
}

TOOLDECODE_INLINE void LarkPattern::quantifiers(std::size_t begin) {
  for (skip();; skip()) {
    std::string quantifier;
    if (peek() == '*' || peek() == '+' || peek() == '?') {
      quantifier = text_[at_++];
    } else if (peek() == '{') {
      quantifier = bounds();
    } else {
      return;
    }
    skip();
    (void)take("?");
    out_.insert(begin, "(?:");
    out_ += ')' + quantifier;
  }
}

TOOLDECODE_INLINE std::string LarkPattern::bounds() {
  const std::size_t begin = at_++;
  const auto number       = [&] {
    const std::size_t from = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return std::string(text_.substr(from, at_ - from));
  };
  const std::string min = number();
  std::string max       = min;
  const bool is_range   = take(",");
  if (is_range) max = number();
  if (min.empty() || !take("}")) fail("a repetition is malformed", begin);
  return '{' + min + (is_range ? "," + max : "") + '}';
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::folded(char32_t first, char32_t last) const {
  const Set set{{first, std::max(first, last)}};
  return flags_.ignores_case ? in_either_case(set) : set;
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::in_either_case(const Set& set) const {
  if (flags_.is_unicode) return either_case(set);
  const Set ascii{{0, 0x7F}};
  return (either_case(set & ascii) & ascii) | set;
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::property(std::string_view name, std::size_t at) {
  auto set = text::unicode_property(name);
  if (!set) set = text::unicode_property("Script=" + std::string(name));
  if (!set) refuse("an unknown property", at);
  return *std::move(set);
}

TOOLDECODE_INLINE std::optional<LarkPattern::Set> LarkPattern::letter_class(char c,
                                                                            std::size_t at) const {
  Set set;
  switch (c) {
    case 'd':
    case 'D':
      set = flags_.is_unicode ? property("Nd", at) : Set{{'0', '9'}};
      break;
    case 's':
    case 'S':
      set = flags_.is_unicode ? text::unicode_space() : Set{{'\t', '\r'}, {' ', ' '}};
      break;
    case 'w':
    case 'W':
      set = flags_.is_unicode ? text::unicode_word()
                              : Set{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
      break;
    default:
      return std::nullopt;
  }
  return c < 'a' ? ~set : set;
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::escape(bool in_class) {
  const std::size_t begin = at_ - 1;
  if (at_ >= text_.size()) fail("a backslash ends the expression", begin);
  const char c = text_[at_];
  if (auto set = letter_class(c, begin)) return ++at_, *std::move(set);
  if (c == 'p' || c == 'P') {
    ++at_;
    std::string_view name = text_.substr(at_, 1);
    if (take("{")) {
      const std::size_t close = text_.find('}', at_);
      if (close == std::string_view::npos) fail("a property is not closed", begin);
      name = text_.substr(at_, close - at_);
      at_  = close;
    }
    ++at_;
    if (!flags_.is_unicode) refuse("a property without the flag 'u'", begin);
    Set set = property(name, begin);
    if (flags_.ignores_case) set = in_either_case(set);
    return c == 'P' ? ~set : set;
  }
  if (!in_class && (c == 'b' || c == 'B' || c == '<' || c == '>')) {
    refuse("word boundaries are not supported", begin);
  }
  if (c == 'A' || c == 'z') refuse("an anchor inside an expression is not supported", begin);
  if (c >= '0' && c <= '9') refuse("references and octal numbers are not supported", begin);
  return folded(escaped_character(begin));
}

TOOLDECODE_INLINE char32_t LarkPattern::escaped_character(std::size_t begin) {
  static constexpr std::string_view letters = "afnrtv", meant = "\a\f\n\r\t\v";
  const char c = text_[at_];
  if (const auto simple = letters.find(c); simple != std::string_view::npos) {
    ++at_;
    return static_cast<char32_t>(meant[simple]);
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    ++at_;
    return escaped_number(c == 'x' ? 2 : c == 'u' ? 4 : 8, begin);
  }
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (is_letter || static_cast<std::uint8_t>(c) >= 0x80) fail("an unknown escape", begin);
  ++at_;
  return static_cast<char32_t>(c);
}

TOOLDECODE_INLINE char32_t LarkPattern::escaped_number(std::size_t digits, std::size_t begin) {
  std::size_t end = at_ + digits, next = end;
  if (take("{")) {
    end = text_.find('}', at_);
    if (end == std::string_view::npos) fail("a number is not closed", begin);
    next = end + 1;
  }
  if (end > text_.size() || end == at_ || end - at_ > 8) fail("digits are missing", begin);
  const std::string_view written = text_.substr(at_, end - at_);
  std::uint32_t value            = 0;
  for (const char c : written) {
    const auto digit = text::hex_digit(c);
    if (!digit) fail("a hexadecimal digit is missing", begin);
    value = value << 4 | *digit;
  }
  if (!flags_.is_unicode && digits == 2 && next == end && value > 0x7F) {
    refuse("without the flag 'u' this is a byte that is no character", begin);
  }
  if (value > Set::last_code_point || (value >= 0xD800 && value <= 0xDFFF)) {
    fail("an escape that is no character", begin);
  }
  at_ = next;
  return value;
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::bracket() {
  const std::size_t begin = at_++;
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, "byte " + std::to_string(at_), "classes nested too deeply");
  }
  skip();
  const bool negated = take("^");
  skip();
  // At the beginning, hyphens and one bracket stand for themselves, operators do not.
  Set all;
  for (; take("-"); skip()) all = all | Set{{'-', '-'}};
  if (all.empty() && take("]")) all = Set{{']', ']'}};
  all = all | operand(begin);
  for (;;) {
    if (take("&&")) {
      all = all & operand(begin);
    } else if (take("--")) {
      all = all & ~operand(begin);
    } else if (take("~~")) {
      const Set other = operand(begin);
      all             = (all & ~other) | (other & ~all);
    } else {
      break;
    }
  }
  ++at_;
  --depth_;
  return negated ? ~all : all;
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::operand(std::size_t begin) {
  Set all;
  for (;;) {
    skip();
    if (at_ >= text_.size()) fail("a class is not closed", begin);
    if (has("]") || has("&&") || has("--") || has("~~")) return all;
    if (has("[:")) {
      all = all | posix();
    } else if (has("[")) {
      all = all | bracket();
    } else {
      all = all | item(begin);
    }
  }
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::item(std::size_t begin) {
  const std::size_t at = at_;
  const auto one       = [&]() -> std::pair<Set, bool> {
    if (at_ >= text_.size()) fail("a class is not closed", begin);
    if (!take("\\")) {
      const std::size_t here = at_;
      const char32_t c       = character();
      check_ascii({{c, c}}, here);
      return {Set{{c, c}}, true};
    }
    const char c        = peek();
    const bool is_class = letter_class(c, at_).has_value() || c == 'p' || c == 'P';
    if (is_class) return {escape(true), false};
    if (c >= '0' && c <= '9') refuse("references and octal numbers are not supported", at_);
    if (at_ >= text_.size()) fail("a backslash ends the expression", at_);
    if (c == '<' || c == '>') fail("an unknown escape", at_ - 1);
    const std::size_t here = at_ - 1;
    const char32_t meant   = escaped_character(here);
    check_ascii({{meant, meant}}, here);
    return {Set{{meant, meant}}, true};
  };
  const auto [first, is_character] = one();
  const Set whole                  = is_character ? folded(first.ranges()[0].first) : first;
  skip();
  const std::size_t dash = at_;
  if (!take("-")) return whole;
  skip();
  if (has("]") || has("-")) {
    at_ = dash;
    return whole;
  }
  if (!is_character) fail("a range that begins with a class", at);
  const char32_t from     = first.ranges()[0].first;
  const auto [last, ends] = one();
  if (!ends || last.ranges()[0].first < from) fail("a range whose ends are out of order", at);
  return folded(from, last.ranges()[0].first);
}

TOOLDECODE_INLINE LarkPattern::Set LarkPattern::posix() {
  const std::size_t begin = at_;
  const std::size_t close = text_.find(":]", at_);
  if (close == std::string_view::npos) fail("a class is not closed", begin);
  std::string_view name = text_.substr(at_ + 2, close - at_ - 2);
  at_                   = close + 2;
  const bool negated    = name.starts_with('^');
  if (negated) name.remove_prefix(1);
  static const std::vector<std::pair<std::string_view, Set>> classes{
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7F}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  for (const auto& [known, set] : classes) {
    if (known != name) continue;
    const Set cased = flags_.ignores_case ? in_either_case(set) : set;
    return negated ? ~cased : cased;
  }
  fail("an unknown class", begin);
}

TOOLDECODE_INLINE std::string lark_pattern(std::string_view text, std::string_view flags) {
  return LarkPattern(text, flags).read();
}

}  // namespace tooldecode::ebnf
