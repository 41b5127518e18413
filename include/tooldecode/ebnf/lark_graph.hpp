/// \file
/// LarkGraph: the rules of a Lark grammar that its start reaches, over lexemes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/grammar_tokens.hpp>
#include <tooldecode/ebnf/lark_lexemes.hpp>
#include <tooldecode/ebnf/lark_syntax.hpp>
#include <tooldecode/ebnf/lark_terminals.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::ebnf {

/// What a Lark grammar needs of those who know more.
struct LarkParts {
  /// The values of a JSON Schema, given as text; empty where there are none.
  std::function<Grammar(std::string_view schema)> json_values{};
  /// What tokens there are; null where none is known.
  const Vocabulary* vocabulary = nullptr;
};

/// Rules as nodes: terminals are their lexemes, everything that can be empty says so.
///
/// \par Complexity  O(text), and as compile_pattern for each terminal
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_grammar, malformed_pattern, unsupported_pattern,
///                  unsupported_keyword, unknown_token} with the byte; those of `json_values` behind
///                  it; Error{limit_exceeded}
class LarkGraph {
 public:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t { lexeme, sequence, choice, repeat, rule };
  struct Node {
    Kind kind = Kind::sequence;
    std::vector<Id> parts{};    ///< rule: its body
    text::Occurrences count{};  ///< repeat
    Id lexeme      = 0;
    std::size_t at = 0;  ///< byte where it begins
  };

  LarkGraph(const LarkFile& file, const LarkParts& parts);

  [[nodiscard]] const Node& operator[](Id id) const { return nodes_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] Id start() const noexcept { return start_; }
  [[nodiscard]] const std::vector<LarkLexeme>& lexemes() const noexcept { return lexemes_; }
  /// What may stand between lexemes, again and again: one lexeme for all that is ignored.
  [[nodiscard]] const std::optional<LarkLexeme>& ignored() const noexcept { return ignored_; }

 private:
  using Expression                            = LarkExpression;
  using Of                                    = LarkExpression::Kind;
  static constexpr std::size_t max_nodes      = 20'000;
  static constexpr std::size_t max_states     = 8 * text::TextDfa::max_states;  // of all terminals
  static constexpr std::size_t max_token_list = 1'000;
  static constexpr std::uint32_t max_nested   = 1'000;

  // The names of a file.
  struct Names {
    const LarkFile& file;
    LarkTerminals terminals;
    std::map<std::string, Id, std::less<>> rules;    // nodes
    std::map<std::string, Id, std::less<>> lexemes;  // nodes
  };
  using Scope = std::shared_ptr<Names>;

  static std::string place(std::size_t at) { return "byte " + std::to_string(at); }
  [[noreturn]] static void fail(const std::string& what, std::size_t at);
  [[noreturn]] static void refuse(const std::string& what, std::size_t at);
  static Scope open(const LarkFile& file);

  Id add(Node node);
  Id optional(Id id);

  // A rule by its name, made where it is new.
  Id rule(Names& names, const std::string& name, std::size_t used);
  Id expression(Names& names, const Expression& one);
  Id node(Names& names, const Expression& one);
  Id copy(Id id, std::size_t at);
  static std::string told(const Expression& one);

  // Lexemes -------------------------------------------------------------------------------------

  Id terminal(Names& names, const Expression& one, const std::string& name, bool is_lazy);
  // The lexeme of texts, if any is not empty; whether one is.
  std::pair<std::optional<LarkLexeme>, bool> lexeme(const text::TextDfa& all,
                                                    const std::string& name, bool is_lazy,
                                                    std::size_t at);
  Id literal(const std::string& text, std::size_t at);
  void add_ignored(Names& names, const Expression& one);

  // Parts ---------------------------------------------------------------------------------------

  Id part(LarkLexeme lexeme, std::size_t at);
  Id token(TokenId id, const Expression& one);
  // A token by its name with the angle brackets, or a choice of numbers and ranges of them.
  Id token(const Expression& one);
  static std::int64_t number(const std::string& digits, std::size_t at);

  Id json(const Expression& one);
  // The bytes that values of a schema may begin with, as far as its type tells.
  static text::ByteSet begins(const JsonValue& schema);
  static bool may_end_in_number(const JsonValue& schema);

  const LarkParts& parts_;
  GrammarTokens tokens_;
  std::vector<Node> nodes_;
  std::vector<LarkLexeme> lexemes_;
  std::map<std::string, Id> literals_;  // lexemes
  std::optional<LarkLexeme> ignored_;
  std::optional<text::TextDfa> ignored_texts_;
  std::size_t states_  = 0;
  std::uint32_t depth_ = 0;
  Id start_            = 0;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_graph.ipp>
#endif
