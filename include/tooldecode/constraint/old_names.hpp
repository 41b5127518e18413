/// \file
/// Deprecated names of version 0.2; version 0.4 removes them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// Use `Constraint{index, grammar.rooted(root)}`.
struct [[deprecated("use Constraint")]] GrammarConstraint : Constraint {
  GrammarConstraint(VocabularyIndex index, const Grammar& grammar, NodeId root)
      : Constraint(std::move(index), grammar.rooted(root)) {}
};
/// Use `Constraint{index, Grammar::json_schema(schema)}`.
struct [[deprecated("use Constraint and Grammar::json_schema")]] JsonSchemaConstraint : Constraint {
  JsonSchemaConstraint(VocabularyIndex index, const JsonValue& schema,
                       const SchemaOptions& options = {})
      : Constraint(std::move(index), Grammar::json_schema(schema, options)) {}
  [[nodiscard]] static Constraint parse(VocabularyIndex index, std::string_view schema,
                                        const SchemaOptions& options = {}) {
    return {std::move(index), Grammar::json_schema(schema, options)};
  }
};
/// Use `Constraint{index, Grammar::regex(pattern)}`.
struct [[deprecated("use Constraint and Grammar::regex")]] RegexConstraint : Constraint {
  RegexConstraint(VocabularyIndex index, std::string_view pattern, const BuildLimits& limits = {})
      : Constraint(std::move(index), Grammar::regex(pattern, limits)) {}
};
/// Use `Constraint{index, Grammar::ebnf(text, {.vocabulary = &index.vocabulary()})}`.
struct [[deprecated("use Constraint and Grammar::ebnf")]] EbnfConstraint : Constraint {
  EbnfConstraint(const VocabularyIndex& index, std::string_view text,
                 std::string_view root = "root", const BuildLimits& limits = {})
      : Constraint(index,
                   Grammar::ebnf(
                       text, {.root = root, .vocabulary = &index.vocabulary(), .limits = limits})) {
  }
};
/// Use `Constraint{index, Grammar::lark(text, {.vocabulary = &index.vocabulary()})}`.
struct [[deprecated("use Constraint and Grammar::lark")]] LarkConstraint : Constraint {
  LarkConstraint(const VocabularyIndex& index, std::string_view text, LarkOptions options = {})
      : Constraint(index, Grammar::lark(text, with(options, index))) {}

 private:
  static LarkOptions with(LarkOptions options, const VocabularyIndex& index) {
    options.vocabulary = &index.vocabulary();
    return options;
  }
};
/// Use `Constraint{index, Grammar::structural_tag(tag, {.vocabulary = &index.vocabulary()})}`.
struct [[deprecated("use Constraint and Grammar::structural_tag")]] StructuralTagConstraint
    : Constraint {
  StructuralTagConstraint(const VocabularyIndex& index, const JsonValue& tag,
                          StructuralTagOptions options = {})
      : Constraint(index, Grammar::structural_tag(tag, with(options, index))) {}
  [[nodiscard]] static Constraint parse(const VocabularyIndex& index, std::string_view tag,
                                        StructuralTagOptions options = {}) {
    return {index, Grammar::structural_tag(tag, with(options, index))};
  }

 private:
  static StructuralTagOptions with(StructuralTagOptions options, const VocabularyIndex& index) {
    options.vocabulary = &index.vocabulary();
    return options;
  }
};
/// Use `Constraint{index, Grammar::choice(texts)}`.
struct [[deprecated("use Constraint and Grammar::choice")]] ChoiceConstraint : Constraint {
  ChoiceConstraint(VocabularyIndex index, const std::vector<std::string>& texts)
      : Constraint(std::move(index), Grammar::choice(texts)) {}
};

/// Now FastForwardTokens.
using ForcedTokens [[deprecated("use FastForwardTokens")]] = FastForwardTokens;

/// Use ConstMaskView::contains.
[[nodiscard, deprecated("use ConstMaskView::contains")]] inline bool is_allowed(
    ConstMaskView mask, std::size_t token) noexcept {
  return mask.contains(token);
}
/// Use ConstMaskView::count.
[[nodiscard, deprecated("use ConstMaskView::count")]] inline std::size_t count_allowed(
    ConstMaskView mask) noexcept {
  return mask.count();
}
/// Use ConstMaskView::for_each.
template <class Visit>
[[deprecated("use ConstMaskView::for_each")]] void for_each_allowed(ConstMaskView mask,
                                                                    Visit visit) {
  mask.for_each(visit);
}

}  // namespace tooldecode
