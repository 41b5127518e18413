/// \file
/// ChoiceConstraint: one of some given texts, as a whole answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
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
  ChoiceConstraint(VocabularyIndex cache, const std::vector<std::string>& texts);

 private:
  using Texts = std::pair<Grammar, NodeId>;

  ChoiceConstraint(Texts texts, VocabularyIndex cache);

  static Texts build(const std::vector<std::string>& texts);
};
static_assert(Constraint<ChoiceConstraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/choice_constraint.ipp>
#endif
