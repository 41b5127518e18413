#pragma once

#include <utility>

#include <tooldecode/ebnf/lark_reader.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE LarkFile LarkReader::read() {
  LarkFile file = statements(false);
  return file;
}

TOOLDECODE_INLINE void LarkReader::skip() {
  for (;; ++at_) {
    if (peek() == '#' || has("//")) {
      while (at_ < text_.size() && peek() != '\n' && peek() != '\r') ++at_;
    }
    if (peek() != ' ' && peek() != '\t') return;
  }
}

TOOLDECODE_INLINE void LarkReader::skip_lines() {
  for (skip(); at_ < text_.size() && at_line_end(); skip()) take("\r"), take("\n");
}

TOOLDECODE_INLINE bool LarkReader::is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

TOOLDECODE_INLINE bool LarkReader::has_name() const {
  const char c = peek() == '_' ? peek(1) : peek();
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

TOOLDECODE_INLINE std::string LarkReader::name() {
  const std::size_t begin = at_;
  while (is_name(peek()) && !has("->")) ++at_;
  std::string made(text_.substr(begin, at_ - begin));
  const bool is_terminal = is_lark_terminal(made);
  for (const char c : made) {
    if (is_terminal ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') {
      fail("the name '" + made + "' mixes small letters, of rules, and capitals, of terminals",
           begin);
    }
  }
  return made;
}

TOOLDECODE_INLINE std::string LarkReader::json() {
  while (std::string_view(" \t\r\n").find(peek()) != std::string_view::npos && at_ < text_.size()) {
    ++at_;
  }
  const std::size_t begin = at_;
  std::size_t depth       = 0;
  bool in_string          = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (in_string) {
      if (c == '\\') ++at_;
      if (c == '"') in_string = false;
      if (c == '"' && depth == 0) return std::string(text_.substr(begin, ++at_ - begin));
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) break;
      if (--depth == 0) return std::string(text_.substr(begin, ++at_ - begin));
    } else if (depth == 0 && !is_name(c) && c != '.' && c != '+') {
      break;
    }
  }
  if (depth > 0 || in_string || at_ == begin) fail("a JSON value is missing or not closed", begin);
  return std::string(text_.substr(begin, at_ - begin));
}

TOOLDECODE_INLINE LarkFile LarkReader::statements(bool in_braces) {
  LarkFile file;
  LarkFile* const outer = std::exchange(file_, &file);
  for (skip_lines(); at_ < text_.size(); skip_lines()) {
    if (in_braces && has("}")) break;
    statement();
    skip();
    if (!at_line_end() && !(in_braces && has("}"))) fail("unexpected character");
  }
  file_ = outer;
  return file;
}

TOOLDECODE_INLINE void LarkReader::statement() {
  const std::size_t begin = at_;
  if (!take("%")) return rule();
  const std::string word = name();
  skip();
  if (word == "ignore") {
    file_->ignored.push_back(alternatives());
  } else if (word == "import") {
    import(begin);
  } else if (word == "llguidance") {
    options(begin);
  } else {
    refuse('%' + word + " is not supported", begin);
  }
}

TOOLDECODE_INLINE void LarkReader::import(std::size_t begin) {
  std::string path = take(".") ? "." : "";
  path += name();
  if (path != "common") refuse("%import of anything but 'common' is not supported", begin);
  const auto import_one = [&](const std::string& from, const std::string& to) {
    const auto pattern = find_lark_common(from);
    if (!pattern) fail("no common terminal is named '" + from + "'", begin);
    add(to,
        {.body = {.kind = Kind::regex, .text = std::string(*pattern), .at = begin}, .at = begin});
  };
  if (take(".")) {
    const std::string from = name();
    skip();
    std::string to = from;
    if (take("->")) {
      skip();
      to = name();
    }
    return import_one(from, to);
  }
  skip();
  if (!take("(")) fail("a terminal's name is missing");
  do {
    skip();
    const std::string from = name();
    import_one(from, from);
    skip();
  } while (take(","));
  if (!take(")")) fail("a list of names is not closed", begin);
}

TOOLDECODE_INLINE void LarkReader::options(std::size_t begin) {
  const std::size_t at   = at_;
  const std::string text = json();
  const JsonValue it     = text::find_json(text).value_or(JsonValue());
  if (!it.is_object()) fail("the options of %llguidance are a JSON object", at);
  for (const auto& [key, value] : it.items()) {
    if (!value.is_boolean()) fail("the option '" + key + "' of %llguidance is not a flag", at);
    const bool is_on = value.get<bool>();
    if (key == "allow_initial_skip") {
      file_->may_begin_ignored = is_on;
    } else if (key == "allow_invalid_utf8" ? is_on : key != "no_forcing") {
      // no_forcing concerns the engine and changes no text.
      refuse("the option '" + key + "' of %llguidance is not supported", begin);
    }
  }
}

TOOLDECODE_INLINE void LarkReader::add(const std::string& name, LarkRule rule) {
  const std::size_t at = rule.at;
  if (!file_->rules.emplace(name, std::move(rule)).second) {
    fail("'" + name + "' is defined twice", at);
  }
}

TOOLDECODE_INLINE void LarkReader::rule() {
  const std::size_t begin = at_;
  // They shape syntax trees, which do not exist here.
  (void)take("!"), (void)take("?"), (void)take("!");
  if (!has_name()) fail("a rule begins with its name");
  const std::string left = name();
  skip();
  if (has("{")) refuse("templates are not supported", at_);
  if (has("::")) refuse("rules with a parameter are not supported", at_);
  if (has(".")) refuse("priorities are not supported", at_);
  LarkRule rule{.at = begin};
  if (has("[")) attributes(left, rule);
  skip();
  if (has("::")) refuse("rules with a parameter are not supported", at_);
  if (!take(":")) fail("':' is missing after a rule's name");
  rule.body = alternatives();
  add(left, std::move(rule));
}

TOOLDECODE_INLINE void LarkReader::attributes(const std::string& left, LarkRule& rule) {
  const std::size_t begin = at_++;
  if (is_lark_terminal(left)) fail("attributes are rules' alone", begin);
  for (skip(); !take("]"); skip()) {
    const std::size_t at    = at_;
    const std::string given = name();
    skip();
    if (given == "lazy") {
      rule.is_lazy = true;
    } else if (given == "capture" || given == "stop_capture") {  // affect what is captured, not
                                                                 // which texts match
      if (take("=")) skip(), (void)string();
    } else if (given == "suffix") {
      if (!take("=")) fail("'=' is missing");
      skip();
      rule.suffix = {value()};
    } else if (given.empty()) {
      fail("an attribute's name is missing");
    } else {
      refuse("the attribute '" + given + "' is not supported", at);
    }
    skip();
    if (!has("]") && !take(",")) fail("an attribute list is not closed", begin);
  }
}

TOOLDECODE_INLINE LarkExpression LarkReader::alternatives() {
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, "byte " + std::to_string(at_), "groups nested too deeply");
  }
  skip();
  LarkExpression made{.kind = Kind::choice, .at = at_};
  do made.parts.push_back(alternative());
  while (take_bar());
  --depth_;
  return made.parts.size() == 1 ? std::move(made.parts[0]) : made;
}

TOOLDECODE_INLINE bool LarkReader::take_bar() {
  const std::size_t begin = at_;
  skip_lines();
  if (take("|")) return true;
  at_ = begin;
  skip();
  return false;
}

TOOLDECODE_INLINE LarkExpression LarkReader::alternative() {
  skip();
  LarkExpression made{.kind = Kind::intersection, .at = at_};
  do made.parts.push_back(sequence());
  while (take("&"));
  if (take("->")) {
    skip();
    const std::size_t at = at_;
    if (!has_name()) fail("a name is missing after '->'");
    if (is_lark_terminal(name())) fail("an alias is named as a rule, in small letters", at);
    skip();
  }
  if (has("%if")) refuse("%if is not supported", at_);
  return made.parts.size() == 1 ? std::move(made.parts[0]) : made;
}

TOOLDECODE_INLINE LarkExpression LarkReader::sequence() {
  skip();
  LarkExpression made{.kind = Kind::sequence, .at = at_};
  while (!at_line_end() && !has("->") && !has("%if") &&
         std::string_view("|&)]}").find(peek()) == std::string_view::npos) {
    made.parts.push_back(repeated());
    skip();
  }
  return made.parts.size() == 1 ? std::move(made.parts[0]) : made;
}

TOOLDECODE_INLINE LarkExpression LarkReader::repeated() {
  const std::size_t begin = at_;
  std::size_t negations   = 0;
  for (; take("~"); skip()) ++negations;
  LarkExpression item = atom();
  if (negations % 2 != 0) {
    item = {.kind = Kind::negation, .parts = {std::move(item)}, .at = begin};
  }
  skip();
  const auto count = quantifier();
  if (!count) return item;
  return {.kind = Kind::repeat, .parts = {std::move(item)}, .count = *count, .at = begin};
}

TOOLDECODE_INLINE std::optional<text::Occurrences> LarkReader::quantifier() {
  if (take("*")) return text::Occurrences{};
  if (take("+")) return text::Occurrences{1};
  if (take("?")) return text::Occurrences{0, 1};
  const std::size_t begin = at_;
  text::Occurrences count;
  if (take("~")) {
    skip();
    if (peek() < '0' || peek() > '9') {  // negation of the next part
      at_ = begin;
      return std::nullopt;
    }
    count.min = count.max = number();
    skip();
    if (take("..")) {
      skip();
      count.max = number();
    }
  } else if (take("{")) {
    skip();
    if (has_name() || has("\"") || has("/")) refuse("templates are not supported", begin);
    count.min = has(",") ? 0 : number();
    count.max = count.min;
    skip();
    if (take(",")) {
      skip();
      count.max = has("}") ? text::Occurrences::unbounded : number();
      skip();
    }
    if (!take("}")) fail("a repetition is not closed", begin);
  } else {
    return std::nullopt;
  }
  if (count.min > count.max) fail("a repetition whose minimum exceeds its maximum", begin);
  return count;
}

TOOLDECODE_INLINE LarkExpression LarkReader::atom() {
  const std::size_t begin = at_;
  if (take("(")) {
    LarkExpression inside = alternatives();
    if (!take(")")) fail("a group is not closed", begin);
    return inside;
  }
  if (take("[")) {
    LarkExpression inside = alternatives();
    if (!take("]")) fail("an optional group is not closed", begin);
    return {.kind = Kind::repeat, .parts = {std::move(inside)}, .count = {0, 1}, .at = begin};
  }
  return value();
}

TOOLDECODE_INLINE LarkExpression LarkReader::value() {
  const std::size_t begin = at_;
  if (has("\"")) {
    std::string text  = string();
    const bool folded = take("i");
    if (!take("..")) {
      return {
          .kind = Kind::string, .text = std::move(text), .flags = folded ? "i" : "", .at = begin};
    }
    std::string last = string();
    if (folded || has("i")) fail("a range of characters has no flags", begin);
    const auto first = text::decode_utf8(text), to = text::decode_utf8(last);
    if (first.size() != 1 || to.size() != 1) {
      fail("a range is from one character to another", begin);
    }
    if (first > to) fail("a range whose ends are out of order", begin);
    return {.kind = Kind::range, .text = text + last, .at = begin};
  }
  if (has("/")) return regex();
  if (has("<")) return token();
  if (take("@")) refuse("references to other grammars are not supported", begin);
  if (take("%")) {
    const std::string word = name();
    if (word == "json") return {.kind = Kind::json, .text = json(), .at = begin};
    if (word == "regex") return {.kind = Kind::substring, .text = json(), .at = begin};
    if (word == "lark") return nested(begin);
    refuse('%' + word + " is not supported", begin);
  }
  if (!has_name()) fail("unexpected character");
  LarkExpression made{.kind = Kind::name, .text = name(), .at = begin};
  if (has("::")) refuse("rules with a parameter are not supported", begin);
  return made;
}

TOOLDECODE_INLINE LarkExpression LarkReader::nested(std::size_t begin) {
  skip_lines();
  if (!take("{")) fail("'{' is missing after %lark");
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, "byte " + std::to_string(at_), "grammars nested too deeply");
  }
  LarkFile inner = statements(true);
  --depth_;
  if (!take("}")) fail("a nested grammar is not closed", begin);
  file_->nested.push_back(std::move(inner));
  return {.kind = Kind::file, .file = file_->nested.size() - 1, .at = begin};
}

TOOLDECODE_INLINE LarkExpression LarkReader::regex() {
  const std::size_t begin = at_++;
  while (!has("/")) {
    if (has("\\")) ++at_;
    if (at_line_end()) fail("a regular expression is not closed", begin);
    ++at_;
  }
  LarkExpression made{.kind = Kind::regex,
                      .text = std::string(text_.substr(begin + 1, at_ - begin - 1)),
                      .at   = begin};
  ++at_;
  while (std::string_view("imslux").find(peek()) != std::string_view::npos && peek() != '\0') {
    made.flags += text_[at_++];
  }
  if (made.text.empty()) fail("a regular expression is empty", begin);
  return made;
}

TOOLDECODE_INLINE LarkExpression LarkReader::token() {
  const std::size_t begin = at_;
  const std::size_t end   = text_.find_first_of("> \t\r\n", begin);
  if (end == std::string_view::npos || text_[end] != '>') fail("a token is not closed", begin);
  if (text_.substr(begin + 1, end - begin - 1).find('<') != std::string_view::npos ||
      end == begin + 1) {
    fail("a token's name is malformed", begin);
  }
  at_ = end + 1;
  return {.kind = Kind::token, .text = std::string(text_.substr(begin, at_ - begin)), .at = begin};
}

TOOLDECODE_INLINE std::string LarkReader::string() {
  const std::size_t begin = at_;
  if (!take("\"")) fail("a string is missing");
  std::string made;
  while (!take("\"")) {
    if (at_line_end()) fail("a string is not closed", begin);
    if (static_cast<std::uint8_t>(peek()) < 0x20) fail("a control character in a string");
    if (!has("\\")) {
      made += text_[at_++];
      continue;
    }
    static constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const std::size_t at = at_++;
    const auto simple    = letters.find(peek());
    if (take("u")) {
      char32_t c = hex(4);
      if (c >= 0xD800 && c < 0xDC00 && take("\\u")) {
        const char32_t low = hex(4);
        if (low >= 0xDC00 && low <= 0xDFFF) c = (c << 10) + low - 0x35FDC00;
      }
      if ((c >= 0xD800 && c <= 0xDFFF) || c > text::CodePointSet::last_code_point) {
        fail("an escape that is no character", at);
      }
      text::append_utf8(made, c);
    } else if (take("x")) {
      text::append_utf8(made, hex(2));
    } else if (peek() != '\0' && simple != std::string_view::npos) {
      made += meant[simple];
      ++at_;
    } else {
      fail("an unknown escape", at);
    }
  }
  const auto characters = text::decode_utf8(made);
  std::string again;
  for (const char32_t c : characters) text::append_utf8(again, c);
  if (again != made) fail("not UTF-8", begin);
  return made;
}

}  // namespace tooldecode::ebnf
