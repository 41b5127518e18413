#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/text/string_lexeme.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE GrammarReader::GrammarReader(std::string_view text, const Vocabulary* vocabulary)
    : TextCursor(text), tokens_(vocabulary) {
  skip();
  while (at_ < text_.size()) rule();
  for (const auto& [name, named] : names_) {
    if (!named.is_defined) fail("the rule '" + name + "' is not defined", named.first_use);
  }
}

TOOLDECODE_INLINE GrammarReader::Id GrammarReader::find(std::string_view name) const {
  const auto named = names_.find(name);
  if (named == names_.end()) {
    throw Error(Errc::malformed_grammar, "", "no rule is named '" + std::string(name) + "'");
  }
  return named->second.rule;
}

TOOLDECODE_INLINE void GrammarReader::skip() {
  while (at_ < text_.size()) {
    if (text_[at_] == '#') {
      while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
    } else if (std::string_view(" \t\r\n").find(text_[at_]) == std::string_view::npos) {
      return;
    } else {
      ++at_;
    }
  }
}

TOOLDECODE_INLINE std::string_view GrammarReader::name() {
  const std::size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c        = text_[at_];
    const bool is_named = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!is_named) break;
  }
  return text_.substr(begin, at_ - begin);
}

TOOLDECODE_INLINE GrammarReader::Named& GrammarReader::named(std::string_view name,
                                                             std::size_t at) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  return names_.emplace(name, Named{rules_.reserve(), at}).first->second;
}

TOOLDECODE_INLINE void GrammarReader::rule() {
  const std::size_t begin = at_;
  const auto left         = name();
  if (left.empty()) fail("a rule begins with its name");
  Named& rule = named(left, begin);
  if (rule.is_defined) fail("the rule '" + std::string(left) + "' is defined twice", begin);
  rule.is_defined = true;
  skip();
  if (!take("::=")) fail("'::=' is missing after a rule's name");
  rules_.define(rule.rule, alternatives());
  if (at_ < text_.size() && !begins_rule()) fail("unexpected character");
}

TOOLDECODE_INLINE bool GrammarReader::begins_rule() {
  const std::size_t begin = at_;
  const bool has_name     = !name().empty();
  skip();
  const bool begins = has_name && has("::=");
  at_               = begin;
  return begins;
}

TOOLDECODE_INLINE GrammarReader::Id GrammarReader::alternatives() {
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, "byte " + std::to_string(at_), "groups nested too deeply");
  }
  std::vector<Id> all{sequence()};
  while (take("|")) all.push_back(sequence());
  --depth_;
  return rules_.choice(std::move(all));
}

TOOLDECODE_INLINE GrammarReader::Id GrammarReader::sequence() {
  std::vector<Id> parts;
  for (;;) {
    skip();
    if (has("!")) {
      parts.push_back(other_tokens());
    } else if (const auto part = term()) {
      parts.push_back(repeated(*part));
    } else {
      break;
    }
  }
  return rules_.sequence(parts);
}

TOOLDECODE_INLINE GrammarReader::Id GrammarReader::repeated(Id item) {
  for (skip(); const auto count = quantifier(); skip()) item = rules_.repeat(item, *count);
  return item;
}

TOOLDECODE_INLINE std::optional<GrammarReader::Id> GrammarReader::term() {
  if (at_ >= text_.size()) return std::nullopt;
  const std::size_t begin = at_;
  switch (text_[at_]) {
    case '|':
    case ')':
      return std::nullopt;
    case '"':
      return literal();
    case '[':
      return rules_.characters(bracket());
    case '/':
      return expression();
    case '.':
      ++at_;
      return rules_.characters(text::CodePointSet::all());
    case '(': {
      ++at_;
      const Id inside = alternatives();
      if (!take(")")) fail("a group is not closed", begin);
      return inside;
    }
    case '<': {
      const Token token = this->token();
      return rules_.part([bytes = tokens_.bytes(token.id, token.where)](Grammar& grammar) {
        return grammar.literal(bytes);
      });
    }
    case '*':
    case '+':
    case '?':
    case '{':
      fail("a repetition follows nothing");
    default:
      break;
  }
  if (begins_rule()) return std::nullopt;
  const auto right = name();
  if (right.empty()) fail("unexpected character");
  return named(right, begin).rule;
}

TOOLDECODE_INLINE GrammarReader::Token GrammarReader::token() {
  const std::size_t begin = at_;
  const std::string where = "byte " + std::to_string(begin);
  if (!take("<")) fail("a token in angle brackets is missing");
  if (take("[")) {
    const std::uint32_t id = number();
    if (!take("]>")) fail("a token's number is not closed", begin);
    return {tokens_.find(std::int64_t{id}, where), where};
  }
  const std::size_t end = text_.find_first_of(">\n", at_);
  if (end == std::string_view::npos || text_[end] == '\n') fail("a token is not closed", begin);
  at_ = end + 1;
  return {tokens_.find(std::string(text_.substr(begin, at_ - begin)), where), where};
}

TOOLDECODE_INLINE GrammarReader::Id GrammarReader::other_tokens() {
  const std::size_t begin = at_++;
  const Token token       = this->token();
  const auto others       = any_tokens({tokens_.control_name(token.id, token.where)});
  skip();
  const auto count = quantifier();
  skip();
  const bool is_any = count && count->max == text::Occurrences::unbounded && count->min <= 1;
  if (!is_any || has("*") || has("+") || has("?") || has("{")) {
    throw Error(Errc::unsupported_keyword, "byte " + std::to_string(begin),
                "a number of tokens of any text no grammar can tell: only '*' or '+' may follow "
                "a token that is excluded");
  }
  const Id some = rules_.part([others](Grammar& grammar) {
    Grammar alone;
    const NodeId any = alone.lexeme(others);
    return grammar.append(alone, grammar::NonemptyTexts(alone)(any));
  });
  return count->min == 1 ? some : rules_.repeat(some, {0, 1});
}

TOOLDECODE_INLINE std::optional<text::Occurrences> GrammarReader::quantifier() {
  if (take("*")) return text::Occurrences{};
  if (take("+")) return text::Occurrences{1};
  if (take("?")) return text::Occurrences{0, 1};
  const std::size_t begin = at_;
  if (!take("{")) return std::nullopt;
  text::Occurrences count;
  skip();
  count.min = count.max = number();
  skip();
  if (take(",")) {
    skip();
    count.max = has("}") ? text::Occurrences::unbounded : number();
    skip();
  }
  if (!take("}")) fail("a repetition is not closed", begin);
  if (count.min > count.max) fail("a repetition whose minimum exceeds its maximum", begin);
  return count;
}

TOOLDECODE_INLINE GrammarReader::Id GrammarReader::literal() {
  const std::size_t begin = at_++;
  std::string text;
  while (!take("\"")) {
    if (at_ >= text_.size() || has("\n")) fail("a literal is not closed", begin);
    text::append_utf8(text, plain_or_escaped());
  }
  return rules_.text(std::move(text));
}

TOOLDECODE_INLINE text::CodePointSet GrammarReader::bracket() {
  const std::size_t begin = at_++;
  const bool negated      = take("^");
  std::vector<text::CodePointSet::Range> ranges;
  while (!take("]")) {
    const auto next = [&] {
      if (at_ >= text_.size() || has("\n")) fail("a class is not closed", begin);
      return plain_or_escaped();
    };
    const std::size_t at = at_;
    const char32_t first = next();
    char32_t last        = first;
    if (has("-") && text_.substr(at_, 2) != "-]") {
      ++at_;
      last = next();
    }
    if (first > last) fail("a range whose ends are out of order", at);
    ranges.emplace_back(first, last);
  }
  text::CodePointSet set(std::move(ranges));
  return negated ? ~set : set;
}

TOOLDECODE_INLINE char32_t GrammarReader::plain_or_escaped() {
  return take("\\") ? escape() : character();
}

TOOLDECODE_INLINE char32_t GrammarReader::escape() {
  const std::size_t begin = at_ - 1;
  if (at_ >= text_.size()) fail("a backslash ends the text", begin);
  const char c = text_[at_++];
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'b':
      return '\b';
    case 'v':
      return '\v';
    case '0':
      return 0;
    case 'x':
      return escaped_number(2, begin);
    case 'u':
      return escaped_number(4, begin);
    case 'U':
      return escaped_number(8, begin);
    default:
      if (std::string_view("\\\"'[]-^/.").find(c) != std::string_view::npos) {
        return static_cast<char32_t>(c);
      }
      fail("an unknown escape", begin);
  }
}

TOOLDECODE_INLINE char32_t GrammarReader::escaped_number(std::size_t digits, std::size_t begin) {
  const char32_t value = hex(digits);
  if (value > text::CodePointSet::last_code_point || (value >= 0xD800 && value <= 0xDFFF)) {
    fail("an escape that is no character", begin);
  }
  return value;
}

TOOLDECODE_INLINE GrammarReader::Id GrammarReader::expression() {
  const std::size_t begin = at_++;
  std::string pattern;
  while (!take("/")) {
    if (at_ >= text_.size() || has("\n")) fail("a regular expression is not closed", begin);
    if (has("\\") && !has("\\/")) pattern += '\\';
    take("\\");
    if (at_ < text_.size()) pattern += text_[at_++];
  }
  try {
    const text::TextDfa text = text::compile_whole_pattern(pattern);
    expressions_ += text.rows().size();
    if (expressions_ > max_expressions) {
      throw Error(Errc::limit_exceeded, "", "regular expressions that need too many states");
    }
    return rules_.lexeme(std::make_shared<const text::Dfa>(text::utf8_lexeme(text)));
  } catch (const Error& error) {
    throw error.within("byte " + std::to_string(begin));
  }
}

TOOLDECODE_INLINE Grammar parse_grammar(std::string_view text, std::string_view root,
                                        const Vocabulary* vocabulary) {
  const GrammarReader reader(text, vocabulary);
  return build_grammar(reader.rules(), reader.find(root));
}

}  // namespace tooldecode::ebnf

namespace tooldecode {

TOOLDECODE_INLINE Grammar Grammar::ebnf(std::string_view text, const EbnfOptions& options) {
  return build(
      {options.limits}, [&] { return ebnf::parse_grammar(text, options.root, options.vocabulary); },
      text);
}

}  // namespace tooldecode
