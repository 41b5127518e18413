/// \file
/// parse_grammar: reads grammars in llama.cpp's GBNF and XGrammar's EBNF.
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
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_cursor.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::ebnf {

/// Reads a grammar's text into rules.
class GrammarReader : text::TextCursor<Errc::malformed_grammar, Errc::unsupported_keyword> {
 public:
  using Id = Rules::Id;

  /// \param vocabulary  for tokens; null refuses them
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
      8 * text::TextDfa::max_states;  // limit for the states of all expressions together

  void skip();
  std::string_view name();
  Named& named(std::string_view name, std::size_t at);

  void rule();
  // Whether a name and `::=` follow: a rule ends where the next one begins.
  bool begins_rule();

  Id alternatives();
  Id sequence();
  Id repeated(Id item);

  std::optional<Id> term();

  // A token in angle brackets: its name includes them; a number stands in square brackets inside.
  struct Token {
    TokenId id{};
    std::string where;
  };
  Token token();
  // `!<token>`. A grammar of bytes cannot exclude a single token; but a run of such tokens is any
  // text with any control tokens except that one.
  Id other_tokens();

  std::optional<text::Occurrences> quantifier();

  Id literal();
  text::CodePointSet bracket();
  char32_t plain_or_escaped();
  char32_t escape();
  char32_t escaped_number(std::size_t digits, std::size_t begin);

  // `/pattern/`: a regular expression that matches a whole text.
  Id expression();

  std::uint32_t depth_ = 0;
  Rules rules_;
  std::map<std::string, Named, std::less<>> names_;
  std::size_t expressions_ = 0;
  GrammarTokens tokens_;
};

/// Parses a grammar of rules `name ::= alternatives`, one of which is the root.
///
/// `|` separates alternatives, which may be empty. Their parts are names, `"literals"`,
/// `[classes]`, `[^classes]`, `.` (any character), `(groups)` and `/regular expressions/` (whole
/// matches, see compile_pattern), each followed by an optional `*`, `+`, `?`, `{m}`, `{m,}` or
/// `{m,n}`. Escapes are `\n \t \r \f \b \v \0 \xHH \uHHHH \UHHHHHHHH` and punctuation. Escapes and
/// classes denote code points, never bytes. `#` begins a comment. White space, including line ends,
/// has no meaning: a rule ends where the next one begins. Rules may be recursive anywhere,
/// including left recursion, and may be ambiguous or empty.
///
/// `<token>` and `<[number]>` are tokens of the vocabulary, see GrammarTokens; `!<token>*` and
/// `!<token>+` are runs of tokens without that control token.
///
/// \param vocabulary  for tokens; null refuses them
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
