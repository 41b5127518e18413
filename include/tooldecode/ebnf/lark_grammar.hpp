/// \file
/// parse_lark: reads grammars in Lark's syntax, with llguidance's lexer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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

// Expands rules over lexemes into rules over characters.
//
// Each boundary between two lexemes has a class: the bytes that must not follow the first one, and
// whether ignored text precedes the boundary. A node gets a separate rule for each pair of classes
// before and after it, and for whether more text follows it: at the end of the whole text nothing
// is ignored.
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
  using OptionalId                          = std::optional<Id>;
  static constexpr std::size_t max_classes  = 32;
  static constexpr std::uint32_t max_nested = 400;

  // After ignored text no %json value may begin; without such values the flag makes no difference.
  Class class_of(const text::ByteSet& forbidden, bool is_ignored = false);
  [[nodiscard]] bool is_barred(const LarkLexeme& lexeme, Class from) const;

  // Finds, as bit masks, the classes that a node may lead to from each class; an upper bound.
  void find_reached();
  [[nodiscard]] std::uint32_t through(Node id, std::uint32_t from) const;
  [[nodiscard]] std::uint32_t reached_from(Node id, Class from);

  // The texts of a node between two classes; nullopt if there are none.
  OptionalId make(Node id, bool goes_on, Class from, Class to);
  OptionalId any(std::vector<Id> all);
  static bool has_value(const OptionalId& made) { return made.has_value(); }
  Id both(Id first, Id second) { return rules_.sequence({first, second}); }

  OptionalId make_sequence(const LarkGraph::Node& node, bool goes_on, Class from, Class to);

  OptionalId make_repeat(const LarkGraph::Node& node, bool goes_on, Class from, Class to);
  // `count` items; if `goes_on`, something follows each of them.
  OptionalId run(Node item, bool goes_on, Class from, Class to, text::Occurrences count);
  OptionalId open_run(Node item, Class from, Class to, std::uint32_t min);

  OptionalId make_lexeme(Node id, bool goes_on, Class from, Class to);
  [[nodiscard]] std::optional<text::DfaPointer> begun(const text::DfaPointer& dfa,
                                                      Class from) const;
  OptionalId ignored_run(Class from, Class to);

  const LarkGraph& graph_;
  const LarkLexer& lexer_;
  const LarkPlaces& places_;
  bool has_ignored_ = false;
  bool has_json_    = false;
  std::vector<Between> classes_{Between{}};
  std::vector<std::uint32_t> ignored_to_;  // [classes]: the classes after ignored text, as bits
  std::vector<std::vector<std::uint32_t>> reached_;  // [nodes, classes]
  Rules rules_;
  std::uint32_t depth_ = 0;
  std::map<std::tuple<Node, bool, Class, Class>, OptionalId> known_;
  std::map<std::pair<Class, Class>, OptionalId> ignored_runs_;
};

}  // namespace detail

/// Parses a grammar in Lark's syntax as llguidance reads it; its root is the rule `start`.
///
/// Rules have lower-case names, terminals upper-case ones. `|` separates alternatives, also on the
/// next line. Their parts are names, `"strings"` and `"strings"i` with JSON's escapes and `\xHH`,
/// `"a".."z"`, `/regular expressions/` with the flags i, m, s, u and x (see lark_pattern),
/// `(groups)` and `[optional parts]`, each followed by an optional `?`, `*`, `+`, `~m`, `~m..n`,
/// `{m}`, `{m,}`, `{,n}` or `{m,n}`. Terminals also have `&` and `~`. Only rules have tokens, as
/// `<name>` and `<[numbers and ranges]>` (see GrammarTokens), `%json` with a schema, whose
/// properties come in documented order, and `%lark { }`; both have `%regex` with substring_chars,
/// substring_words or substring_chunks. Statements are `%ignore`, `%import common.NAME` and
/// `%llguidance` (allow_initial_skip). Attributes of rules are `lazy` and `suffix`; `capture`,
/// `stop_capture`, aliases and the signs `?` and `!` are accepted and do not change the texts.
///
/// A lexer finds the terminals, see LarkLexer: `NAME "and" NAME` does not split "xandy". Ignored
/// text may stand between terminals, after the last one only if something may follow it, and before
/// the first one only with allow_initial_skip.
///
/// These are refused by name: stop, max_tokens, temperature and other attributes, parameters,
/// templates, priorities, references to other grammars, single tokens with any text (`<[*]>`,
/// `<[^1]>`), other statements, and terminals that overlap so that only the open rules could tell
/// them apart. As in llguidance, unreachable rules are only checked for syntax.
///
/// \par Complexity  O(text), as compile_pattern for each terminal, as LarkLexer, as build_grammar
/// \par Errors      Error{malformed_grammar, malformed_json} with the byte;
///                  Error{malformed_pattern, unsupported_pattern} with the byte and the character;
///                  Error{unsupported_keyword} with the byte of what is refused;
///                  Error{unknown_token} with the byte; Error{limit_exceeded}; errors of `parts`
///                  with the byte before their place
/// \par Source      llguidance 1.9, docs/syntax.md; Lark
[[nodiscard]] Grammar parse_lark(std::string_view text, const LarkParts& parts = {});

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_grammar.ipp>
#endif
