/// \file
/// LarkGraph: the reachable rules of a Lark grammar, over lexemes.
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
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::ebnf {

/// Callbacks and data for the parts of a Lark grammar that are not Lark.
struct LarkParts {
  /// Makes the grammar of the values of a JSON Schema, given as text; if empty, `%json` is refused.
  std::function<Grammar(std::string_view schema)> json_values{};
  /// For tokens; null refuses them.
  const Vocabulary* vocabulary = nullptr;
};

/// Rules as nodes over lexemes; a node that can be empty is explicitly optional.
///
/// \par Complexity  O(text), and as compile_pattern for each terminal
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_grammar, malformed_pattern, unsupported_pattern,
///                  unsupported_keyword, unknown_token} with the byte; errors of `json_values` with
///                  the byte before their place; Error{limit_exceeded}
class LarkGraph {
 public:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t { lexeme, sequence, choice, repeat, rule };
  struct Node {
    Kind kind = Kind::sequence;
    std::vector<Id> parts{};
    text::Occurrences count{};
    Id lexeme      = 0;
    std::size_t at = 0;  ///< byte offset of its beginning
  };

  LarkGraph(const LarkFile& file, const LarkParts& parts);

  [[nodiscard]] const Node& operator[](Id id) const { return nodes_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] Id start() const noexcept { return start_; }
  [[nodiscard]] const std::vector<LarkLexeme>& lexemes() const noexcept { return lexemes_; }
  /// Text that may stand between lexemes any number of times: one lexeme for all that is ignored.
  [[nodiscard]] const std::optional<LarkLexeme>& ignored() const noexcept { return ignored_; }

 private:
  using Expression                        = LarkExpression;
  using Of                                = LarkExpression::Kind;
  static constexpr std::size_t max_nodes  = 20'000;
  static constexpr std::size_t max_states = 8 * text::TextDfa::max_states;  // of all terminals
                                                                            // together
  static constexpr std::size_t max_token_list = 1'000;
  static constexpr std::uint32_t max_nested   = 1'000;

  struct Names {
    const LarkFile& file;
    LarkTerminals terminals;
    std::map<std::string, Id, std::less<>> rules;
    std::map<std::string, Id, std::less<>> lexemes;
  };
  using Scope = std::shared_ptr<Names>;

  static std::string place(std::size_t at) { return "byte " + std::to_string(at); }
  [[noreturn]] static void fail(const std::string& what, std::size_t at);
  [[noreturn]] static void refuse(const std::string& what, std::size_t at);
  static Scope open(const LarkFile& file);

  Id add(Node node);
  Id optional(Id id);

  Id rule(Names& names, const std::string& name, std::size_t used);
  Id expression(Names& names, const Expression& one);
  Id node(Names& names, const Expression& one);
  Id copy(Id id, std::size_t at);
  static std::string told(const Expression& one);

  Id terminal(Names& names, const Expression& one, const std::string& name, bool is_lazy);
  // The lexeme of the nonempty texts, if there are any, and whether the empty text is one too.
  std::pair<std::optional<LarkLexeme>, bool> lexeme(const text::TextDfa& all,
                                                    const std::string& name, bool is_lazy,
                                                    std::size_t at);
  Id literal(const std::string& text, std::size_t at);
  void add_ignored(Names& names, const Expression& one);

  Id part(LarkLexeme lexeme, std::size_t at);
  Id token(TokenId id, const Expression& one);
  // A token by its name in angle brackets, or a choice of numbers and ranges.
  Id token(const Expression& one);
  static std::int64_t number(const std::string& digits, std::size_t at);

  Id json(const Expression& one);
  // The bytes that the schema's values may begin with, as far as its type tells.
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
