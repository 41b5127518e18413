/// \file
/// LarkConstraint: a text of a grammar that is written in Lark's syntax.
#pragma once

#include <cstdint>
#include <string_view>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/concepts.hpp>

namespace tooldecode {

/// How a Lark grammar is read.
struct LarkOptions {
  std::uint32_t whitespace = 40;     ///< of `%json`, see SchemaOptions
  bool every_spelling      = false;  ///< of `%json`, see SchemaOptions
  BuildLimits limits{};              ///< what building it may cost
};

/// The texts of a Lark grammar as llguidance reads it, from their first byte to their last, see
/// parse_lark; its tokens are those of the vocabulary.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction as parse_lark; the rest as GrammarConstraint
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      from construction, as parse_lark, and as JsonSchemaConstraint behind the byte of
///                  a `%json`; Error{unsatisfiable_schema} where no text matches
/// \par Source      see parse_lark
class LarkConstraint : public GrammarConstraint {
 public:
  LarkConstraint(VocabularyIndex cache, std::string_view grammar, const LarkOptions& options = {});
};
static_assert(Constraint<LarkConstraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/lark_constraint.ipp>
#endif
