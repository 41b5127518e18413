/// \file
/// What ebnf_constraint.hpp declares.
#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/constraint/ebnf_constraint.hpp>
#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace detail {

inline ebnf::RootedGrammar parse_within(const BuildLimits& limits, std::string_view grammar,
                                        std::string_view root, const Vocabulary& vocabulary) {
  const BuildBudget budget(limits);
  return ebnf::parse_grammar(grammar, root, &vocabulary);
}
inline GrammarConstraint constraint_of(VocabularyIndex cache, const ebnf::RootedGrammar& parsed) {
  return {std::move(cache), parsed.grammar, parsed.root};
}

}  // namespace detail

TOOLDECODE_INLINE EbnfConstraint::EbnfConstraint(VocabularyIndex cache, std::string_view grammar,
                                                 std::string_view root, const BuildLimits& limits)
    : GrammarConstraint(detail::constraint_of(
          cache, detail::parse_within(limits, grammar, root, cache.vocabulary()))) {}

}  // namespace tooldecode
