// The smallest constraint of documents: one JSON Schema.
#include <string>

#include <tooldecode/constraint/json_schema_constraint.hpp>
#include <tooldecode/constraint/token_mask.hpp>

namespace td = tooldecode;

td::TokenMask first_mask(const td::Vocabulary& vocabulary, const std::string& schema) {
  const auto values = td::JsonSchemaConstraint::parse(vocabulary, schema);
  td::TokenMask mask(vocabulary.size());
  values.fill_mask(values.initial(), mask.words());
  return mask;
}
