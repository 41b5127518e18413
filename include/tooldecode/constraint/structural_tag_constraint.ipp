/// \file
/// What structural_tag_constraint.hpp declares.
#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/structural_tag_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/structural_tag.hpp>

namespace tooldecode {

TOOLDECODE_INLINE StructuralTagConstraint::StructuralTagConstraint(
    VocabularyIndex cache, const Json& tag, const StructuralTagOptions& options)
    : StructuralTagConstraint(BuildBudget(options.limits), std::move(cache), tag, options) {}

TOOLDECODE_INLINE StructuralTagConstraint StructuralTagConstraint::parse(
    VocabularyIndex cache, std::string_view tag, const StructuralTagOptions& options) {
  return {std::move(cache), text::parse_exact_json(tag), options};
}

TOOLDECODE_INLINE StructuralTagConstraint::StructuralTagConstraint(
    const BuildBudget& /*budget*/, VocabularyIndex cache, const Json& tag,
    const StructuralTagOptions& options) try
    : StructuralTagConstraint(build(cache, tag, options), cache) {
} catch (const Error& error) {
  throw error.under("#");
}

TOOLDECODE_INLINE StructuralTagConstraint::StructuralTagConstraint(const Texts& texts,
                                                                   VocabularyIndex cache)
    : GrammarConstraint(std::move(cache), texts.first, texts.second) {}

TOOLDECODE_INLINE StructuralTagConstraint::Texts StructuralTagConstraint::build(
    const VocabularyIndex& cache, const Json& tag, const StructuralTagOptions& options) {
  Grammar grammar;
  const NodeId root = tools::build_structural_tag(grammar, tag, &cache.vocabulary(), options);
  return {std::move(grammar), root};
}

}  // namespace tooldecode
