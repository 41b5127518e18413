/// \file
/// JsonSchemaConstraint: one JSON value that conforms to a schema, as a whole answer.
#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// The values of a schema, with nothing before or after them.
///
/// Without options properties come in any order and there may be white space between values;
/// `{.whitespace = 0}` admits what Python's `json.dumps` writes and no other spacing.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction as SchemaCompiler; the rest as GrammarConstraint
/// \par Threads     every const member may run concurrently; states are values
/// \par Errors      from construction, as SchemaCompiler, with the JSON pointer;
///                  Error{malformed_json} from `parse`, with the byte; Error{limit_exceeded} where
///                  building would cost more than SchemaOptions::limits
/// \par Source      JSON Schema draft 2020-12
class JsonSchemaConstraint : public GrammarConstraint {
 public:
  using Json = JsonValue;

  JsonSchemaConstraint(VocabularyIndex cache, const Json& schema, SchemaOptions options = {});

  /// The constraint of a schema's text, whose numbers are exact whatever their size.
  [[nodiscard]] static JsonSchemaConstraint parse(VocabularyIndex cache, std::string_view schema,
                                                  SchemaOptions options = {});

 private:
  using Values = std::pair<Grammar, NodeId>;

  // The budget is that of the automaton too.
  JsonSchemaConstraint(const BuildBudget& budget, VocabularyIndex cache, const Json& schema,
                       SchemaOptions options);
  JsonSchemaConstraint(Values values, VocabularyIndex cache);
};
static_assert(Constraint<JsonSchemaConstraint>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/json_schema_constraint.ipp>
#endif
