/// \file
/// parse_lark: grammars in Lark's syntax, with the lexer that llguidance has for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/ebnf/lark_lexemes.hpp>
#include <tooldecode/ebnf/lark_lexer.hpp>
#include <tooldecode/ebnf/lark_reader.hpp>
#include <tooldecode/ebnf/lark_syntax.hpp>
#include <tooldecode/ebnf/rules.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::ebnf {

namespace detail {

// Rules over characters of rules over lexemes.
//
// Between two lexemes stands a class: what must not follow the first of them, and whether something
// ignored stands there. A node from one class to another is a rule of its own, as are those of
// which some text goes on behind them and those that end the whole: there nothing is ignored.
class LarkRules {
 public:
  using Id = Rules::Id;

  LarkRules(const LarkGraph& graph, const LarkLexer& lexer);

  [[nodiscard]] std::pair<Rules, Id> build(bool may_begin_ignored) &&;

 private:
  using Kind  = LarkGraph::Kind;
  using Node  = LarkGraph::Id;
  using Class = std::uint32_t;
  struct Between {
    text::ByteSet forbidden{};
    bool is_ignored                                        = false;
    friend bool operator==(const Between&, const Between&) = default;
  };
  using Made                                = std::optional<Id>;
  static constexpr std::size_t max_classes  = 32;
  static constexpr std::uint32_t max_nested = 400;

  // Behind what is ignored no value comes; without values this makes no difference.
  Class class_of(const text::ByteSet& forbidden, bool is_ignored = false);
  [[nodiscard]] bool is_barred(const LarkLexeme& lexeme, Class from) const;

  // To which classes a node leads from each, at most: one bit each.
  void find_reached();
  [[nodiscard]] std::uint32_t through(Node id, std::uint32_t from) const;
  [[nodiscard]] std::uint32_t reached_from(Node id, Class from);

  // The texts of a node between two classes; nothing where there are none.
  Made make(Node id, bool goes_on, Class from, Class to);
  Made any(std::vector<Id> all);
  static bool has_value(const Made& made) { return made.has_value(); }
  Id both(Id first, Id second) { return rules_.sequence({first, second}); }

  Made make_sequence(const LarkGraph::Node& node, bool goes_on, Class from, Class to);

  Made make_repeat(const LarkGraph::Node& node, bool goes_on, Class from, Class to);
  // So many items, each of which something follows, or none.
  Made run(Node item, bool goes_on, Class from, Class to, text::Occurrences count);
  Made open_run(Node item, Class from, Class to, std::uint32_t min);

  // Lexemes -------------------------------------------------------------------------------------

  Made make_lexeme(Node id, bool goes_on, Class from, Class to);
  // The texts that may begin behind a class.
  [[nodiscard]] std::optional<text::DfaPointer> begun(const text::DfaPointer& dfa,
                                                      Class from) const;
  // Something ignored, once or more often.
  Made ignored_run(Class from, Class to);

  const LarkGraph& graph_;
  const LarkLexer& lexer_;
  const LarkPlaces& places_;
  bool has_ignored_ = false;
  bool has_json_    = false;
  std::vector<Between> classes_{Between{}};
  std::vector<std::uint32_t> ignored_to_;  // [classes]: where something ignored leads, as bits
  std::vector<std::vector<std::uint32_t>> reached_;  // [nodes, classes]
  Rules rules_;
  std::uint32_t depth_ = 0;
  std::map<std::tuple<Node, bool, Class, Class>, Made> known_;
  std::map<std::pair<Class, Class>, Made> ignored_runs_;
};

}  // namespace detail

/// The grammar of a text in Lark's syntax, as llguidance reads it: its rule `start`.
///
/// Rules have small letters, terminals capitals. Their alternatives are separated by `|`, also on
/// the next line; their parts are names, `"strings"` and `"strings"i` with JSON's escapes and
/// `\xHH`, `"a".."z"`, `/regular expressions/` with the flags i, m, s, u and x (see lark_pattern),
/// `(groups)` and `[optional ones]`, each with `?`, `*`, `+`, `~m`, `~m..n`, `{m}`, `{m,}`, `{,n}`
/// or `{m,n}` behind it. Terminals have `&` and `~` too. In rules alone there are tokens, as `<name>`
/// and `<[numbers and ranges]>` (see GrammarTokens), `%json` with a schema, whose properties come in
/// their documented order, and `%lark { }`; in both, `%regex` with substring_chars, substring_words
/// or substring_chunks. `%ignore`, `%import common.NAME` and `%llguidance` (allow_initial_skip) are
/// statements; a rule's attributes are `lazy`, `suffix`, and `capture` and `stop_capture`, which
/// change no text, nor do aliases and the signs `?` and `!`.
///
/// Terminals are found by a lexer, see LarkLexer: `NAME "and" NAME` does not split "xandy". What is
/// ignored stands between terminals, behind the last one only where something may follow it, and
/// before the first only with allow_initial_skip.
///
/// Refused by name: stop, max_tokens, temperature and other attributes, parameters, templates,
/// priorities, references to other grammars, one token of any text (`<[*]>`, `<[^1]>`), other
/// statements, and terminals that overlap in a way that only the open rules can tell apart. Of
/// rules that nothing reaches only the syntax is read, as in llguidance.
///
/// \par Complexity  O(text), as compile_pattern for each terminal, as LarkLexer, as build_grammar
/// \par Errors      Error{malformed_grammar, malformed_json} with the byte; Error{malformed_pattern,
///                  unsupported_pattern} with the byte and the character; Error{unsupported_keyword}
///                  with the byte for what is refused; Error{unknown_token} with the byte;
///                  Error{limit_exceeded}; those of `parts` behind the byte
/// \par Source      llguidance 1.9, docs/syntax.md; Lark
[[nodiscard]] Grammar parse_lark(std::string_view text, const LarkParts& parts = {});

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_grammar.ipp>
#endif
