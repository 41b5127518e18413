/// \file
/// LarkReader: parses llguidance's Lark syntax into a LarkFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/lark_syntax.hpp>
#include <tooldecode/ebnf/lark_terminals.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/text_cursor.hpp>

namespace tooldecode::ebnf {

/// Parses from left to right; a rule ends at the end of its line, unless the next line begins with
/// `|`.
///
/// \par Complexity  O(text)
/// \par Errors      Error{malformed_grammar, malformed_json} with the byte;
///                  Error{unsupported_keyword} with the byte for features of llguidance or Lark
///                  that are not supported, which the message names; Error{limit_exceeded}
/// \par Source      llguidance 1.9, docs/syntax.md
class LarkReader : text::TextCursor<Errc::malformed_grammar, Errc::unsupported_keyword> {
 public:
  explicit LarkReader(std::string_view text) : TextCursor(text) {}

  [[nodiscard]] LarkFile read();

 private:
  using Kind                                = LarkExpression::Kind;
  static constexpr std::uint32_t max_nested = 200;

  [[nodiscard]] bool at_line_end() const { return at_ >= text_.size() || has("\n") || has("\r\n"); }
  // Skips spaces and comments up to the end of the line.
  void skip();
  void skip_lines();
  static bool is_name(char c);
  [[nodiscard]] bool has_name() const;
  std::string name();
  // A JSON value, delimited by its brackets and quotes.
  std::string json();

  LarkFile statements(bool in_braces);
  void statement();
  void import(std::size_t begin);
  void options(std::size_t begin);
  void add(const std::string& name, LarkRule rule);
  void rule();
  void attributes(const std::string& left, LarkRule& rule);

  LarkExpression alternatives();
  bool take_bar();
  LarkExpression alternative();
  LarkExpression sequence();
  LarkExpression repeated();
  std::optional<text::Occurrences> quantifier();
  LarkExpression atom();
  LarkExpression value();
  LarkExpression nested(std::size_t begin);
  LarkExpression regex();
  LarkExpression token();
  // A JSON string, in which \xHH is allowed too.
  std::string string();

  std::uint32_t depth_ = 0;
  LarkFile* file_      = nullptr;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_reader.ipp>
#endif
