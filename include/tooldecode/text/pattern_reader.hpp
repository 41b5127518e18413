/// \file
/// PatternReader: the text of a pattern as it is read, and what one character of it stands for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

  explicit PatternReader(std::string_view pattern) : text_(decode_utf8(pattern)) {
    if (text_.size() > max_characters) {
      throw Error(Errc::limit_exceeded, "", "a pattern of too many characters");
    }
    check_encoding(pattern);
  }

  [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
  /// The characters before this place.
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  void go_to(std::size_t at) noexcept { at_ = at; }
  /// A place as errors name it.
  [[nodiscard]] std::string place(std::size_t at) const {
    std::string before;
    for (std::size_t i = 0; i < at; ++i) append_utf8(before, text_[i]);
    return "byte " + std::to_string(before.size());
  }
  /// Says what is wrong, at a place or here.
  [[noreturn]] void fail(const std::string& what, std::size_t at) const {
    throw Error(Errc::malformed_pattern, place(at), what);
  }
  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }
  /// What is right but cannot be kept to is refused once the rest has proved to be right too.
  void refuse(const std::string& what, std::size_t at) {
    if (!refused_) refused_.emplace(Errc::unsupported_pattern, place(at), what);
  }
  [[nodiscard]] bool has(char32_t c, std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() && text_[at_ + ahead] == c;
  }
  bool take(char32_t c) {
    if (!has(c)) return false;
    ++at_;
    return true;
  }
  /// The next character, which must be there; `missing` says what it would have been.
  char32_t any(const char* missing) {
    if (at_end()) fail(missing);
    return text_[at_++];
  }
  [[nodiscard]] bool has_digit() const {
    return !at_end() && text_[at_] >= '0' && text_[at_] <= '9';
  }
  /// The digits here, without zeros in front of others.
  std::u32string digits() {
    std::u32string all;
    for (; has_digit(); ++at_) {
      if (all == U"0") all.clear();
      all += text_[at_];
    }
    return all;
  }
  /// Throws what was refused first.
  void check() const {
    if (refused_) throw *refused_;
  }

  /// What `\w` matches.
  [[nodiscard]] static CodePointSet word() {
    return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  }

  /// A character or a class; a surrogate is one character, though no text has it.
  struct Member {
    CodePointSet set;
    std::optional<char32_t> code;  ///< where it is one character, not a class
  };
  /// What follows a backslash.
  Member escape() {
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
  /// What follows the `u` of an escape.
  char32_t unicode_escape() {
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
    at_ = after;  // it stands alone
    return high;
  }
  /// What follows the bracket that opens a class, and its end.
  CodePointSet bracket() {
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

  /// The name of a group and the `>` after it; what stands before it is read.
  std::u32string group_name() {
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

 private:
  static bool is_identifier(char32_t c, bool is_first) {
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

  void check_encoding(std::string_view pattern) const {
    std::string again;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const std::size_t begin = again.size();
      append_utf8(again, text_[i]);
      if (pattern.substr(begin, again.size() - begin) != std::string_view(again).substr(begin)) {
        fail("a pattern that is not UTF-8", i);
      }
    }
  }
  static CodePointSet space() {
    return {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
            {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
            {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  }
  static Member one(char32_t code) { return {{{code, code}}, code}; }
  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = any("hexadecimal digits are missing");
      const char32_t d = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : 16;
      if (d == 16) fail("a hexadecimal digit is missing");
      value = value * 16 + d;
    }
    return value;
  }
  CodePointSet property(std::size_t begin) {
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

  std::u32string text_;
  std::size_t at_ = 0;
  std::optional<Error> refused_;
};

}  // namespace tooldecode::text
