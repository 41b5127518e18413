/// \file
/// StructuralTagConstraint: an answer as a structural tag describes it.
#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/structural_tag.hpp>

namespace tooldecode {

/// The texts of a structural tag, from their first byte to their last: the JSON that vLLM and SGLang
/// take as `structural_tag`. See tools::build_structural_tag for what is read, what is refused, and
/// where texts are others than XGrammar's.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction as build_structural_tag; the rest as GrammarConstraint
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      from construction, as build_structural_tag; Error{malformed_json} from `parse`,
///                  with the byte
/// \par Source      XGrammar 0.2
class StructuralTagConstraint : public GrammarConstraint {
 public:
  using Json = JsonValue;

  StructuralTagConstraint(VocabularyIndex cache, const Json& tag,
                          const StructuralTagOptions& options = {});

  /// The constraint of a tag's text, whose schemas have exact numbers whatever their size.
  [[nodiscard]] static StructuralTagConstraint parse(VocabularyIndex cache, std::string_view tag,
                                                     const StructuralTagOptions& options = {});

 private:
  using Texts = std::pair<Grammar, NodeId>;

  // The budget is that of the automaton too.
  StructuralTagConstraint(const BuildBudget& budget, VocabularyIndex cache, const Json& tag,
                          const StructuralTagOptions& options);
  StructuralTagConstraint(const Texts& texts, VocabularyIndex cache);

  static Texts build(const VocabularyIndex& cache, const Json& tag,
                     const StructuralTagOptions& options);
};
static_assert(Constraint<StructuralTagConstraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/structural_tag_constraint.ipp>
#endif
