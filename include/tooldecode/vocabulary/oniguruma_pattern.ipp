#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/vocabulary/oniguruma_pattern.hpp>
#include <tooldecode/vocabulary/white_space.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE std::string OnigurumaPattern::translate() {
  read_alternatives(0);
  if (at_ < text_.size()) fail("a bracket is closed that is not open");
  return std::move(out_);
}

TOOLDECODE_INLINE char OnigurumaPattern::byte() {
  if (at_ == text_.size()) fail("the pattern is cut short");
  return text_[at_++];
}

TOOLDECODE_INLINE OnigurumaPattern::Part OnigurumaPattern::read_alternatives(unsigned depth) {
  if (depth > 50) fail("groups are nested too deeply");
  Part result;
  bool is_empty = true;  // this alternative can be, so far
  while (at_ < text_.size() && !has(")")) {
    if (has("|")) {
      result.can_be_empty = result.can_be_empty || is_empty;
      is_empty            = true;
    }
    const std::size_t begin = out_.size();
    const Part part         = read_repeats(begin, read_atom(depth));
    is_empty                = is_empty && part.can_be_empty;
  }
  result.can_be_empty = result.can_be_empty || is_empty;
  return result;
}

TOOLDECODE_INLINE OnigurumaPattern::Part OnigurumaPattern::read_atom(unsigned depth) {
  if (has("\\")) return read_escaped_atom();
  if (has("*") || has("+") || has("?") || !read_interval().empty()) {
    fail("nothing is repeated");
  }
  if (take("(")) return read_group(depth + 1);
  const bool is_set = has("[") || has(".");
  if (is_set || has("|")) previous_ = 0;
  if (take("[")) {
    out_ += written(read_class(depth + 1));
  } else if (take("^") || take("$")) {
    out_ += std::string("(?m:") + text_[at_ - 1] + ')';
    return place;
  } else if (take("|")) {
    out_ += '|';
    return place;
  } else if (take(".")) {
    out_ += '.';
  } else {
    write_character(*read_character(false).one);
  }
  return {};
}

TOOLDECODE_INLINE OnigurumaPattern::Part OnigurumaPattern::read_group(unsigned depth) {
  const bool ignored_case = ignores_case_;
  const auto finish       = [&](const std::string& opening) {
    out_ += opening;
    const Part part = read_alternatives(depth);
    out_ += ')';
    ignores_case_ = ignored_case;
    return part;
  };
  if (take("?i)")) {  // up to the end of the group that it stands in
    ignores_case_ = true;
    return {.can_repeat = false, .can_be_empty = finish("(?i:").can_be_empty};
  }
  std::string opening = "(?:";  // references are not translated, so that groups need no number
  bool is_place       = false;
  if (take("?i:")) {
    ignores_case_ = true;
    opening       = "(?i:";
  } else if (has("?")) {
    constexpr std::array<std::string_view, 6> kinds{"?:", "?>", "?=", "?!", "?<=", "?<!"};
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](auto one) { return has(one); });
    if (kind == kinds.end()) fail("the kind of the group is not known");
    is_place = kind >= kinds.begin() + 2;
    opening  = '(' + std::string(*kind);
    take(*kind);
  }
  const Part part = finish(opening);
  if (!take(")")) fail("a bracket is not closed");
  return is_place ? place : part;
}

TOOLDECODE_INLINE OnigurumaPattern::Part OnigurumaPattern::read_escaped_atom() {
  if (has("\\A") || has("\\z") || has("\\Z")) {
    out_ += text_.substr(at_, 2);
    at_ += 2;
    return place;
  }
  const Characters characters = read_character(false);
  if (characters.one) {
    write_character(*characters.one);
  } else {
    previous_ = 0;
    out_ += written(characters.set);
  }
  return {};
}

TOOLDECODE_INLINE OnigurumaPattern::Part OnigurumaPattern::read_repeats(std::size_t begin,
                                                                        Part part) {
  for (int count = 0;; ++count) {
    const std::string repeat = read_repeat();
    if (repeat.empty()) return part;
    if (!part.can_repeat || count > 3) fail("this is not repeated");
    // The engines end loops of empty matches at different places.
    if (part.can_be_empty && repeat[0] != '?') fail("what is repeated can be empty");
    part.can_be_empty =
        part.can_be_empty || repeat[0] == '?' || repeat[0] == '*' || repeat.starts_with("{0");
    if (count > 0) {
      // PCRE2 would read two repeats in a row as a possessive or lazy one.
      out_.insert(begin, "(?:");
      out_ += ')';
    }
    out_ += repeat;
  }
}

TOOLDECODE_INLINE std::string OnigurumaPattern::read_repeat() {
  std::string repeat;
  if (has("*") || has("+") || has("?")) {
    repeat = byte();
    if (has("?") || has("+")) repeat += byte();
    return repeat;
  }
  repeat = read_interval();
  // Only an interval with a comma has a lazy form, and none has a possessive one.
  if (repeat.find(',') != std::string::npos && take("?")) repeat += '?';
  return repeat;
}

TOOLDECODE_INLINE std::string OnigurumaPattern::read_interval() {
  const std::size_t begin = at_;
  if (!take("{")) return {};
  std::string low      = digits();
  const bool has_comma = take(",");
  const auto high      = has_comma ? digits() : low;
  if (!take("}") || (low.empty() && high.empty())) {
    at_ = begin;  // a brace that stands for itself
    return {};
  }
  if (low.empty()) low = '0';
  if (low.size() > 5 || high.size() > 5) fail("this is repeated too often");
  if (!high.empty() && std::stoul(high) < std::stoul(low)) fail("an interval is empty");
  return '{' + low + (has_comma ? ',' + high : "") + '}';
}

TOOLDECODE_INLINE std::string OnigurumaPattern::digits() {
  std::string result;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') result += byte();
  return result;
}

TOOLDECODE_INLINE OnigurumaPattern::CharacterSet OnigurumaPattern::read_class(unsigned depth) {
  if (depth > 50) fail("classes are nested too deeply");
  const bool is_negated = take("^");
  CharacterSet result;
  for (int count = 0;; ++count) {
    CharacterSet part;
    read_class_part(part, count == 0, depth);
    if (part.items.empty() && part.others.empty()) fail("a class is empty");
    if (count > 50) fail("too many classes intersect");
    if (count == 0) {
      result = std::move(part);
    } else {
      result = {.others = {"(?:(?=" + written(result) + ')' + written(part) + ')'}};
    }
    if (take("]")) break;
    if (ignores_case_) fail("classes intersect where case is ignored");
    take("&&");
  }
  return is_negated ? CharacterSet{.others = {negated(result)}} : result;
}

TOOLDECODE_INLINE void OnigurumaPattern::read_class_part(CharacterSet& part, bool is_first,
                                                         unsigned depth) {
  const std::size_t begin = at_;
  while (!has("]") && !has("&&")) {
    if (has("[")) {
      if (has("[:") || ignores_case_) fail("a class is within another");
      ++at_;
      CharacterSet inner = read_class(depth + 1);
      part.items += inner.items;
      part.others.insert(part.others.end(), inner.others.begin(), inner.others.end());
      continue;
    }
    const bool is_dash     = has("-");
    const bool is_outer    = is_first && at_ == begin;
    const Characters first = read_character(true);
    if (is_dash && (has("-") || !(is_outer || has("]")))) fail("a range is not clear");
    if (!first.one) {
      part.items += first.set.items;
      part.others.insert(part.others.end(), first.set.others.begin(), first.set.others.end());
      continue;
    }
    if (ignores_case_ && *first.one >= 0x80) fail("case is ignored outside of ASCII");
    part.items += escaped(*first.one);
    if (!has("-") || has("-]")) continue;
    ++at_;
    if (has("[") || has("&&")) fail("a range is not clear");
    const Characters last = read_character(true);
    if (!last.one || *last.one < *first.one || (has("-") && !has("-]"))) {
      fail("a range is not clear");
    }
    if (ignores_case_ && *last.one >= 0x80) fail("case is ignored outside of ASCII");
    part.items += '-' + escaped(*last.one);
  }
}

TOOLDECODE_INLINE OnigurumaPattern::Characters OnigurumaPattern::read_character(bool in_class) {
  if (take("\\")) return read_escape(in_class);
  const auto found = text::find_code_point(text_, at_);
  if (!found) fail("the pattern is cut short");
  at_ += found->bytes;
  return {.one = found->value};
}

TOOLDECODE_INLINE OnigurumaPattern::Characters OnigurumaPattern::read_escape(bool in_class) {
  // Ruby's word characters. Outside of classes they include digits of Latin-1 that are not in the
  // documentation.
  static const std::string class_word  = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
  static const std::string plain_word  = class_word + R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
  static const std::string hexadecimal = "0-9A-Fa-f";
  constexpr std::array<std::pair<char, std::uint32_t>, 7> controls{
      {{'a', 0x07}, {'e', 0x1B}, {'f', 0x0C}, {'n', 0x0A}, {'r', 0x0D}, {'t', 0x09}, {'v', 0x0B}}};
  const char c = byte();
  for (const auto& [letter, control] : controls) {
    if (c == letter) return {.one = control};
  }
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool is_digit  = c >= '0' && c <= '9';
  if (c > ' ' && c <= '~' && !is_letter && !is_digit) return {.one = static_cast<std::uint8_t>(c)};
  switch (c) {
    case ' ':
      return {.one = 0x20};
    case 'b':
      if (in_class) return {.one = 0x08};
      break;
    case 'x':
      if (take("{")) {
        const std::uint32_t wide = read_hexadecimal(1, 6);
        if (!take("}")) fail("a number is not closed");
        return {.one = wide};
      } else {
        const std::uint32_t byte = read_hexadecimal(1, 2);
        if (byte >= 0x80) fail("a byte is no character");
        return {.one = byte};
      }
    case 'u':
      return {.one = read_hexadecimal(4, 4)};
    case 'd':
    case 'D':
    case 's':
    case 'S':
      return {.set = {.items = {'\\', c}, .is_escape = true}};
    case 'h':
      return {.set = {.items = hexadecimal}};
    case 'H':
      return {.set = {.others = {"[^" + hexadecimal + ']'}}};
    case 'w':
    case 'W': {
      if (ignores_case_) break;
      const std::string& word = in_class ? class_word : plain_word;
      if (c == 'w') return {.set = {.items = word}};
      return {.set = {.others = {"[^" + word + ']'}}};
    }
    case 'p':
    case 'P':
      if (ignores_case_) break;
      return {.set = read_property(c == 'P')};
    default:
      break;
  }
  fail("the escape is not known");
}

TOOLDECODE_INLINE OnigurumaPattern::CharacterSet OnigurumaPattern::read_property(bool is_negated) {
  constexpr std::string_view categories =
      " Any L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp"
      " C Cc Cf Cn Co Cs ";
  if (!take("{")) fail("a property has no braces");
  is_negated            = is_negated != take("^");
  const std::size_t end = std::min(text_.find('}', at_), text_.size());
  std::string name(text_.substr(at_, end - at_));
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  if (!is_name || end == text_.size()) fail("the property is not known");
  at_ = end + 1;
  // Without `sc:` PCRE2 includes characters of other scripts that are used with this one.
  if (categories.find(' ' + name + ' ') == std::string_view::npos) name.insert(0, "sc:");
  return {.items = (is_negated ? "\\P{" : "\\p{") + name + '}', .is_escape = true};
}

TOOLDECODE_INLINE std::uint32_t OnigurumaPattern::read_hexadecimal(std::size_t min,
                                                                   std::size_t max) {
  const std::string_view text = text_.substr(at_, max);
  std::uint32_t number        = 0;
  const char* end  = std::from_chars(text.data(), text.data() + text.size(), number, 16).ptr;
  const auto count = static_cast<std::size_t>(end - text.data());
  if (count < min || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
    fail("a number is no character");
  }
  at_ += count;
  return number;
}

TOOLDECODE_INLINE void OnigurumaPattern::write_character(std::uint32_t c) {
  if (ignores_case_) {
    // Oniguruma also matches one character for two, as \u00DF for "ss".
    constexpr std::array<std::string_view, 5> pairs{"ss", "ff", "fi", "fl", "st"};
    const auto lower = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
    for (const std::string_view pair : pairs) {
      if (previous_ == static_cast<std::uint8_t>(pair[0]) &&
          lower == static_cast<std::uint8_t>(pair[1])) {
        fail("case is ignored in letters that are also one character");
      }
    }
    if (c >= 0x80) fail("case is ignored outside of ASCII");
    previous_ = lower;
  }
  out_ += escaped(c);
}

TOOLDECODE_INLINE std::string OnigurumaPattern::escaped(std::uint32_t c) {
  if (c < 0x20 || c == 0x7F) return hexadecimal_escape(c);
  constexpr std::string_view marks = R"(\^$.[]|()?*+{}-)";
  std::string result;
  if (c < 0x80 && marks.find(static_cast<char>(c)) != std::string_view::npos) result = '\\';
  text::append_utf8(result, static_cast<char32_t>(c));
  return result;
}

TOOLDECODE_INLINE std::string OnigurumaPattern::written(const CharacterSet& set) {
  if (set.is_escape) return set.items;
  if (set.items.empty() && set.others.size() == 1) return set.others[0];
  std::string result = set.items.empty() ? "" : '[' + set.items + ']';
  if (set.others.empty()) return result;
  for (const std::string& other : set.others) result += (result.empty() ? "" : "|") + other;
  return "(?:" + result + ')';
}

TOOLDECODE_INLINE std::string OnigurumaPattern::negated(const CharacterSet& set) {
  if (set.others.empty()) return "[^" + set.items + ']';
  return "(?:(?!" + written(set) + ")(?s:.))";
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE std::string translate_oniguruma(std::string_view pattern) {
  return detail::OnigurumaPattern(pattern).translate();
}

}  // namespace tooldecode::vocabulary
