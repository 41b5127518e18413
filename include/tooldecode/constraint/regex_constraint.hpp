/// \file
/// RegexConstraint: a text that a regular expression matches as a whole.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>

namespace tooldecode {

/// The texts that an ECMA-262 pattern matches from their first character to their last, as UTF-8.
///
/// The syntax is that of JSON Schema's `pattern`, see compile_pattern; only there does a pattern
/// search. Anchors are allowed where they hold.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction as compile_pattern; the rest as GrammarConstraint
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      Error{malformed_pattern, unsupported_pattern} with the byte,
///                  Error{limit_exceeded}, Error{unsatisfiable_schema} where no text matches
/// \par Source      ECMA-262, section 22.2; RFC 3629
class RegexConstraint : public GrammarConstraint {
 public:
  /// \param limits  what building it may cost
  RegexConstraint(VocabularyIndex cache, std::string_view pattern, const BuildLimits& limits = {})
      : RegexConstraint(build(pattern, limits), std::move(cache)) {}

 private:
  using Texts = std::pair<Grammar, NodeId>;

  RegexConstraint(Texts texts, VocabularyIndex cache)
      : GrammarConstraint(std::move(cache), std::move(texts.first), texts.second) {}

  static Texts build(std::string_view pattern, const BuildLimits& limits) {
    const BuildBudget budget(limits);
    const text::TextDfa text = text::compile_whole_pattern(pattern);
    if (text.empty()) throw Error(Errc::unsatisfiable_schema, "", "no text matches this pattern");
    Grammar grammar;
    const NodeId root = grammar.lexeme(std::make_shared<const text::Dfa>(text::utf8_lexeme(text)));
    return {std::move(grammar), root};
  }
};
static_assert(Constraint<RegexConstraint>);

}  // namespace tooldecode
