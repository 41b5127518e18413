/// \file
/// What json_schema_constraint.hpp declares.
#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/json_schema_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode {

namespace detail {

inline std::pair<Grammar, NodeId> values_of(const JsonValue& schema, SchemaOptions options) {
  Grammar grammar;
  const NodeId root = SchemaCompiler(grammar, schema, std::move(options)).value(schema, "#");
  return {std::move(grammar), root};
}

}  // namespace detail

TOOLDECODE_INLINE JsonSchemaConstraint::JsonSchemaConstraint(VocabularyIndex cache,
                                                             const Json& schema,
                                                             SchemaOptions options)
    : JsonSchemaConstraint(BuildBudget(options.limits), std::move(cache), schema,
                           std::move(options)) {}

TOOLDECODE_INLINE JsonSchemaConstraint JsonSchemaConstraint::parse(VocabularyIndex cache,
                                                                   std::string_view schema,
                                                                   SchemaOptions options) {
  return {std::move(cache), text::parse_exact_json(schema), std::move(options)};
}

TOOLDECODE_INLINE JsonSchemaConstraint::JsonSchemaConstraint(const BuildBudget& /*budget*/,
                                                             VocabularyIndex cache,
                                                             const Json& schema,
                                                             SchemaOptions options) try
    : JsonSchemaConstraint(detail::values_of(schema, std::move(options)), std::move(cache)) {
} catch (const Error& error) {
  throw error.under("#");
}

TOOLDECODE_INLINE JsonSchemaConstraint::JsonSchemaConstraint(Values values, VocabularyIndex cache)
    : GrammarConstraint(std::move(cache), std::move(values.first), values.second) {}

}  // namespace tooldecode
