/// \file
/// Constraints of specifications: JSON Schemas, regular expressions and grammars.
#pragma once

#include <string>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>

#include <program/json.hpp>

namespace program {

/// What a row's `schema`, or its `spec` with its `root`, allows; the kind is json-schema, regex or
/// ebnf.
tooldecode::GrammarConstraint constrain_specified(const tooldecode::VocabularyIndex& cache,
                                                  const std::string& kind, const Json& row,
                                                  bool documented_order);

}  // namespace program
