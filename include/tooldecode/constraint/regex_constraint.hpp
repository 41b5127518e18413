/// \file
/// RegexConstraint: a text that a regular expression matches as a whole.
#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/grammar.hpp>

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
  RegexConstraint(VocabularyIndex cache, std::string_view pattern, const BuildLimits& limits = {});

 private:
  using Texts = std::pair<Grammar, NodeId>;

  RegexConstraint(Texts texts, VocabularyIndex cache);

  static Texts build(std::string_view pattern, const BuildLimits& limits);
};
static_assert(Constraint<RegexConstraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/regex_constraint.ipp>
#endif
