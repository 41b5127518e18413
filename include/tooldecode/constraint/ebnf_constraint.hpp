/// \file
/// EbnfConstraint: a text of a grammar that is written as text.
#pragma once

#include <string_view>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/concepts.hpp>

namespace tooldecode {

/// The texts of a grammar in GBNF or EBNF, from their first byte to their last, see parse_grammar.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction as parse_grammar; the rest as GrammarConstraint
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      from construction, as parse_grammar; Error{unsatisfiable_schema} where no text
///                  matches
/// \par Source      see parse_grammar
class EbnfConstraint : public GrammarConstraint {
 public:
  /// \param limits  what building it may cost
  EbnfConstraint(VocabularyIndex cache, std::string_view grammar, std::string_view root = "root",
                 const BuildLimits& limits = {});
};
static_assert(Constraint<EbnfConstraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/ebnf_constraint.ipp>
#endif
