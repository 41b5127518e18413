#include <string>

#include <tooldecode/constraint/ebnf_constraint.hpp>
#include <tooldecode/constraint/json_schema_constraint.hpp>
#include <tooldecode/constraint/regex_constraint.hpp>

#include <program/specified.hpp>

namespace program {

namespace td = tooldecode;

td::GrammarConstraint constrain_specified(const td::VocabularyIndex& cache, const std::string& kind,
                                          const Json& row, bool documented_order) {
  if (kind == "json-schema") {
    return td::JsonSchemaConstraint(
        cache, row["schema"],
        td::SchemaOptions{.documented_order = documented_order, .every_spelling = true});
  }
  const auto spec = row["spec"].get<std::string>();
  if (kind == "regex") return td::RegexConstraint(cache, spec);
  const bool is_named = row.contains("root") && row["root"].is_string();
  return td::EbnfConstraint(cache, spec, is_named ? row["root"].get<std::string>() : "root");
}

}  // namespace program
