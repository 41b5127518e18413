/// \file
/// What choice_constraint.hpp declares.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/choice_constraint.hpp>
#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ChoiceConstraint::ChoiceConstraint(VocabularyIndex cache,
                                                     const std::vector<std::string>& texts)
    : ChoiceConstraint(build(texts), std::move(cache)) {}

TOOLDECODE_INLINE ChoiceConstraint::ChoiceConstraint(Texts texts, VocabularyIndex cache)
    : GrammarConstraint(std::move(cache), std::move(texts.first), texts.second) {}

TOOLDECODE_INLINE ChoiceConstraint::Texts ChoiceConstraint::build(
    const std::vector<std::string>& texts) {
  if (texts.empty()) throw Error(Errc::invalid_option, "", "a choice must have one text or more");
  Grammar grammar;
  const NodeId end = grammar.empty();
  std::vector<std::pair<std::string, NodeId>> alternatives;
  for (const std::string& text : texts) alternatives.emplace_back(text, end);
  const NodeId root = grammar.trie(alternatives);
  return {std::move(grammar), root};
}

}  // namespace tooldecode
