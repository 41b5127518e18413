/// \file
/// Pattern: an ECMA-262 regular expression as a tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/code_points.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/unicode_properties.hpp>

namespace tooldecode {

/// The syntax tree of a pattern in Unicode mode, as JSON Schema's `pattern` has it.
///
/// Groups leave no trace, lazy quantifiers are greedy ones: neither changes which texts match. What
/// only the older, lenient grammar of ECMA-262's annex B allows and what means the same everywhere
/// is taken too: brackets and braces that stand alone, `[\w-.]`, escapes of punctuation.
///
/// \par Complexity  O(length), and O(ranges) for a property
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_pattern} or, for what is no regular language or is not
///                  supported, Error{unsupported_pattern}, with the character; limit_exceeded
/// \par Source      ECMA-262, section 22.2.1 and annex B.1.2
class Pattern {
 public:
  using Index = std::uint32_t;
  enum class Kind : std::uint8_t {
    set,        ///< one character
    sequence,   ///< all children in turn
    choice,     ///< one of the children
    repeat,     ///< the child, so many times
    begin,      ///< the begin of the text
    end,        ///< the end of the text
    edge,       ///< a word begins or ends here; negated: none does
    lookahead,  ///< the child matches from here on, negated: does not
  };
  struct Node {
    Kind kind = Kind::sequence;
    std::vector<Index> children{};
    CodePointSet set{};
    Occurrences count{};
    bool negated   = false;
    bool has_look  = false;  ///< it holds a lookahead
    bool can_empty = true;   ///< it may match the empty text somewhere
  };

  explicit Pattern(std::string_view pattern) : text_(decode_utf8(pattern)) {
    if (text_.size() > most_characters) {
      throw Error(Errc::limit_exceeded, "", "a pattern of too many characters");
    }
    root_ = alternatives();
    if (at_ < text_.size()) fail("unmatched ')'");
  }

  [[nodiscard]] const Node& operator[](Index node) const { return nodes_[node]; }
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] Index root() const noexcept { return root_; }

  /// What `\w` matches.
  [[nodiscard]] static CodePointSet word() {
    return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  }

 private:
  static constexpr std::size_t most_characters = 50'000;
  static constexpr std::uint32_t most_nested   = 200;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Errc::malformed_pattern, "character " + std::to_string(at_), what);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Errc::unsupported_pattern, "character " + std::to_string(at_), what);
  }
  [[nodiscard]] bool has(char32_t c, std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() && text_[at_ + ahead] == c;
  }
  bool take(char32_t c) {
    if (!has(c)) return false;
    ++at_;
    return true;
  }
  char32_t any(const char* missing) {
    if (at_ >= text_.size()) fail(missing);
    return text_[at_++];
  }

  Index add(Node node) {
    const auto some = [&](auto is) {
      return std::any_of(node.children.begin(), node.children.end(),
                         [&](Index child) { return is(nodes_[child]); });
    };
    const auto empties = [](const Node& child) { return child.can_empty; };
    node.has_look =
        node.kind == Kind::lookahead || some([](const Node& child) { return child.has_look; });
    switch (node.kind) {
      case Kind::set:
        node.can_empty = false;
        break;
      case Kind::sequence:
        node.can_empty = !some([](const Node& child) { return !child.can_empty; });
        break;
      case Kind::choice:
        node.can_empty = some(empties);
        break;
      case Kind::repeat:
        node.can_empty = node.count.min == 0 || some(empties);
        break;
      default:
        break;
    }
    nodes_.push_back(std::move(node));
    return static_cast<Index>(nodes_.size() - 1);
  }
  Index characters(CodePointSet set) { return add({.kind = Kind::set, .set = std::move(set)}); }

  Index alternatives() {
    if (++depth_ > most_nested) fail("groups are nested too deeply");
    std::vector<Index> all{terms()};
    while (take('|')) all.push_back(terms());
    --depth_;
    return all.size() == 1 ? all[0] : add({.kind = Kind::choice, .children = std::move(all)});
  }
  Index terms() {
    std::vector<Index> all;
    while (at_ < text_.size() && !has('|') && !has(')')) all.push_back(term());
    return all.size() == 1 ? all[0] : add({.kind = Kind::sequence, .children = std::move(all)});
  }
  Index term() {
    const Index one  = atom();
    const auto count = quantifier();
    if (!count) return one;
    if (is_assertion_) fail("a quantifier follows an assertion");
    take('?');  // a lazy quantifier matches the same texts
    return add({.kind = Kind::repeat, .children = {one}, .count = *count});
  }
  std::optional<Occurrences> quantifier() {
    if (take('*')) return Occurrences{};
    if (take('+')) return Occurrences{1};
    if (take('?')) return Occurrences{0, 1};
    if (!has('{')) return std::nullopt;
    const std::size_t begin = at_++;
    const auto number       = [&]() -> std::optional<std::uint32_t> {
      std::optional<std::uint32_t> value;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        value = std::min<std::uint32_t>(value.value_or(0) * 10 + (text_[at_++] - '0'), 1'000'000);
      }
      return value;
    };
    const auto min = number();
    auto max       = min;
    if (!min && has(',')) fail("a quantifier without a minimum");
    if (min && take(',')) max = has('}') ? std::optional(Occurrences::unbounded) : number();
    if (!min || !max || !take('}')) {
      at_ = begin;  // a brace that stands alone
      return std::nullopt;
    }
    if (*min > *max) fail("a quantifier whose minimum exceeds its maximum");
    return Occurrences{*min, *max};
  }
  Index atom() {
    const char32_t c     = any("an atom is missing");
    is_assertion_        = false;
    const auto assertion = [&](Kind kind, bool negated = false) {
      is_assertion_ = true;
      return add({.kind = kind, .negated = negated});
    };
    switch (c) {
      case '(':
        return group();
      case '[':
        return characters(bracket());
      case '.':
        return characters(~CodePointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
      case '^':
        return assertion(Kind::begin);
      case '$':
        return assertion(Kind::end);
      case '*':
      case '+':
      case '?':
        fail("a quantifier follows nothing");
      case '\\':
        if (take('b')) return assertion(Kind::edge);
        if (take('B')) return assertion(Kind::edge, true);
        return characters(escape());
      default:
        return characters({{c, c}});
    }
  }
  Index group() {
    const auto inside = [&] {
      const Index all = alternatives();
      if (!take(')')) fail("a group is not closed");
      return all;
    };
    is_assertion_ = false;
    if (take('?')) {
      if (has('=') || has('!')) {
        const bool negated = any("") == '!';
        const Index look =
            add({.kind = Kind::lookahead, .children = {inside()}, .negated = negated});
        is_assertion_ = true;
        return look;
      }
      if (take('<')) {
        if (has('=') || has('!')) refuse("look-behind is not supported");
        if (has('>')) fail("a group's name is empty");
        while (!take('>')) (void)any("'(?<' needs a '>'");
      } else if (!take(':')) {
        refuse("flags are not supported");
      }
    }
    const Index all = inside();
    is_assertion_   = false;
    return all;
  }

  static CodePointSet space() {
    return {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
            {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
            {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  }
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
    if (high < 0xD800 || high > 0xDBFF || !has('\\') || !has('u', 1)) return high;
    at_ += 2;
    const char32_t low = hex(4);
    if (low < 0xDC00 || low > 0xDFFF) fail("a surrogate stands alone");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }
  // What follows a backslash.
  CodePointSet escape() {
    const char32_t c = any("a backslash ends the pattern");
    const auto one   = [](char32_t code) { return CodePointSet{{code, code}}; };
    switch (c) {
      case 'd':
        return {{'0', '9'}};
      case 'D':
        return ~CodePointSet{{'0', '9'}};
      case 'w':
        return word();
      case 'W':
        return ~word();
      case 's':
        return space();
      case 'S':
        return ~space();
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
        if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') fail("an octal escape");
        return one(0);
      case 'x':
        return one(hex(2));
      case 'c': {
        const char32_t letter = any("'\\c' needs a letter") | 0x20;
        if (letter < 'a' || letter > 'z') fail("'\\c' needs a letter");
        return one(letter & 0x1F);
      }
      case 'u':
        return one(unicode_escape());
      case 'p':
        return property();
      case 'P':
        return ~property();
      case 'k':
        refuse("back-references are not supported");
      default:
        break;
    }
    if (c >= '1' && c <= '9') refuse("back-references are not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) fail("an unknown escape");
    return one(c);
  }
  CodePointSet property() {
    if (!take('{')) fail("'\\p' needs a property in braces");
    std::string name;
    while (!has('}')) append_utf8(name, any("a property is not closed"));
    const std::optional<CodePointSet> set = unicode_property(name);
    if (!set) refuse("the property '" + name + "' is not supported");
    ++at_;
    return *set;
  }
  CodePointSet bracket() {
    const bool negated = take('^');
    std::vector<CodePointSet::Range> all;
    const auto insert = [&](const CodePointSet& set) {
      all.insert(all.end(), set.ranges().begin(), set.ranges().end());
    };
    while (!take(']')) {
      const Member first = member();
      if (has('-') && at_ + 1 < text_.size() && !has(']', 1)) {
        ++at_;
        const Member last = member();
        if (first.code && last.code) {
          if (*first.code > *last.code) fail("a range whose ends are out of order");
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
  struct Member {
    CodePointSet set;
    std::optional<char32_t> code;  // where it is one character, not a class
  };
  Member member() {
    const auto one   = [](char32_t code) { return Member{{{code, code}}, code}; };
    const char32_t c = any("a class is not closed");
    if (c != '\\') return one(c);
    if (take('b')) return one('\b');
    const char32_t letter = at_ < text_.size() ? text_[at_] : 0;
    CodePointSet set      = escape();
    const bool is_class =
        std::u32string_view(U"dDwWsSpP").find(letter) != std::u32string_view::npos;
    if (is_class || set.empty()) return {std::move(set), std::nullopt};  // empty: a lone surrogate
    const char32_t code = set.ranges()[0].first;
    return {std::move(set), code};
  }

  std::u32string text_;
  std::size_t at_      = 0;
  std::uint32_t depth_ = 0;
  bool is_assertion_   = false;  // the last atom is one
  std::vector<Node> nodes_;
  Index root_ = 0;
};

}  // namespace tooldecode
