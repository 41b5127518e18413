/// \file
/// What lark_constraint.hpp declares.
#pragma once

#include <string_view>
#include <utility>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/constraint/lark_constraint.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode {

namespace detail {

// The values of a schema in a grammar of their own, in the order and with the spaces that
// llguidance has by default.
inline ebnf::RootedGrammar lark_json_values(std::string_view text, const LarkOptions& options) {
  const auto schema = text::parse_exact_json(text);
  if (!schema.is_object() && !schema.is_boolean()) {
    throw Error(Errc::malformed_schema, "#", "a schema is an object, true or false");
  }
  ebnf::RootedGrammar made;
  made.root = SchemaCompiler(made.grammar, schema,
                             {.documented_order = true,
                              .whitespace       = options.whitespace,
                              .every_spelling   = options.every_spelling,
                              .limits           = options.limits})
                  .value(schema, "#");
  return made;
}
inline GrammarConstraint lark_constraint(VocabularyIndex cache, std::string_view grammar,
                                         const LarkOptions& options) {
  const ebnf::RootedGrammar parsed = [&] {
    const BuildBudget budget(options.limits);
    return ebnf::parse_lark(
        grammar,
        {.json_values = [&](std::string_view text) { return lark_json_values(text, options); },
         .vocabulary  = &cache.vocabulary()});
  }();
  return {std::move(cache), parsed.grammar, parsed.root};
}

}  // namespace detail

TOOLDECODE_INLINE LarkConstraint::LarkConstraint(VocabularyIndex cache, std::string_view grammar,
                                                 const LarkOptions& options)
    : GrammarConstraint(detail::lark_constraint(std::move(cache), grammar, options)) {}

}  // namespace tooldecode
