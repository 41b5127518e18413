/// \file
/// What regex_constraint.hpp declares.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/regex_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/text/utf8_lexeme.hpp>

namespace tooldecode {

TOOLDECODE_INLINE RegexConstraint::RegexConstraint(VocabularyIndex cache, std::string_view pattern,
                                                   const BuildLimits& limits)
    : RegexConstraint(build(pattern, limits), std::move(cache)) {}

TOOLDECODE_INLINE RegexConstraint::RegexConstraint(Texts texts, VocabularyIndex cache)
    : GrammarConstraint(std::move(cache), std::move(texts.first), texts.second) {}

TOOLDECODE_INLINE RegexConstraint::Texts RegexConstraint::build(std::string_view pattern,
                                                                const BuildLimits& limits) {
  const BuildBudget budget(limits);
  const text::TextDfa text = text::compile_whole_pattern(pattern);
  if (text.empty()) throw Error(Errc::unsatisfiable_schema, "", "no text matches this pattern");
  Grammar grammar;
  const NodeId root = grammar.lexeme(std::make_shared<const text::Dfa>(text::utf8_lexeme(text)));
  return {std::move(grammar), root};
}

}  // namespace tooldecode
