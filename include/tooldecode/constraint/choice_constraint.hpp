/// \file
/// ChoiceConstraint: one of some given texts, as a whole answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode {

/// Exactly one of the texts: labels, commands, names.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction O(bytes of the texts); the rest as GrammarConstraint
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      Error{invalid_option} where there are no texts
class ChoiceConstraint : public GrammarConstraint {
 public:
  /// \param texts  any bytes; equal ones count once
  ChoiceConstraint(VocabularyIndex cache, const std::vector<std::string>& texts)
      : ChoiceConstraint(build(texts), std::move(cache)) {}

 private:
  using Texts = std::pair<Grammar, NodeId>;

  ChoiceConstraint(Texts texts, VocabularyIndex cache)
      : GrammarConstraint(std::move(cache), std::move(texts.first), texts.second) {}

  static Texts build(const std::vector<std::string>& texts) {
    if (texts.empty()) throw Error(Errc::invalid_option, "", "a choice must have one text or more");
    Grammar grammar;
    const NodeId end = grammar.empty();
    std::vector<std::pair<std::string, NodeId>> alternatives;
    for (const std::string& text : texts) alternatives.emplace_back(text, end);
    const NodeId root = grammar.trie(alternatives);
    return {std::move(grammar), root};
  }
};
static_assert(Constraint<ChoiceConstraint>);

}  // namespace tooldecode
