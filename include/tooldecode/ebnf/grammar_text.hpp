/// \file
/// parse_grammar: grammars written as text, in llama.cpp's GBNF and XGrammar's EBNF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/grammar_tokens.hpp>
#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/nonempty.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::ebnf {

/// Reads the text from left to right into rules.
class GrammarReader {
 public:
  using Id = Rules::Id;

  /// \param vocabulary  what tokens there are; null where none is known
  explicit GrammarReader(std::string_view text, const Vocabulary* vocabulary = nullptr);

  [[nodiscard]] const Rules& rules() const noexcept { return rules_; }
  [[nodiscard]] Id find(std::string_view name) const;

 private:
  struct Named {
    Id rule               = 0;
    std::size_t first_use = 0;
    bool is_defined       = false;
  };
  static constexpr std::uint32_t max_nested = 200;
  static constexpr std::size_t max_expressions =
      8 * text::TextDfa::max_states;  // states of them all

  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }
  [[noreturn]] static void fail(const std::string& what, std::size_t at);

  [[nodiscard]] bool has(std::string_view next) const;
  bool take(std::string_view next);
  // White space and comments.
  void skip();
  std::string_view name();
  Named& named(std::string_view name, std::size_t at);

  void rule();
  // Whether a name and `::=` follow: a rule ends where the next one begins.
  bool begins_rule();

  Id alternatives();
  Id sequence();
  Id repeated(Id item);

  // The next part of a sequence, if it has one more.
  std::optional<Id> term();

  // A token in angle brackets, which belong to its name, or its number in square ones inside.
  struct Token {
    TokenId id{};
    std::string where;
  };
  Token token();
  // `!<token>`: of single tokens a grammar of bytes knows nothing, but any number of tokens is any
  // text and any control tokens but that one.
  Id other_tokens();

  std::optional<text::Occurrences> quantifier();
  std::uint32_t number();

  Id literal();
  text::CodePointSet bracket();
  // A character as it is, or an escape.
  char32_t character();
  char32_t escape();
  char32_t hex(int digits, std::size_t begin);

  // `/pattern/`: what a regular expression matches from its first character to its last.
  Id expression();

  std::string_view text_;
  std::size_t at_      = 0;
  std::uint32_t depth_ = 0;
  Rules rules_;
  std::map<std::string, Named, std::less<>> names_;
  std::size_t expressions_ = 0;
  GrammarTokens tokens_;
};

/// The grammar of a text: rules `name ::= alternatives`, of which one is the root.
///
/// Alternatives are separated by `|` and may be empty; their parts are names, `"literals"`,
/// `[classes]`, `[^classes]`, `.` (any character), `(groups)` and `/regular expressions/` (whole
/// matches, see compile_pattern), each with `*`, `+`, `?`, `{m}`, `{m,}` or `{m,n}` after it.
/// Escapes are
/// `\n \t \r \f \b \v \0 \xHH \uHHHH \UHHHHHHHH` and punctuation; all of them, and all classes, are
/// about code points, never bytes. `#` begins a comment. White space, line ends too, has no
/// meaning: a rule ends where the next one begins. Rules may recur anywhere, at their left end too,
/// and may be ambiguous or empty.
///
/// `<token>` and `<[number]>` are tokens of the vocabulary, see GrammarTokens; `!<token>*` and
/// `!<token>+` are tokens without that control token.
///
/// \param vocabulary  what tokens there are; null where none is known
///
/// \par Complexity  O(text), and as build_grammar
/// \par Errors      Error{malformed_grammar} with the byte, for an undefined rule that of its first
///                  use; Error{malformed_pattern, unsupported_pattern} with the byte and the
///                  character; Error{unknown_token, unsupported_keyword} with a token's byte;
///                  Error{limit_exceeded}
/// \par Source      llama.cpp, grammars/README.md; XGrammar's EBNF
[[nodiscard]] Grammar parse_grammar(std::string_view text, std::string_view root = "root",
                                    const Vocabulary* vocabulary = nullptr);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/grammar_text.ipp>
#endif
