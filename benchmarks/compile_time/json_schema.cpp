// The smallest constraint of JSON documents: one JSON Schema.
#include <string>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/schema/json_schema.hpp>

namespace td = tooldecode;

td::TokenMask first_mask(const td::Vocabulary& vocabulary, const std::string& schema) {
  const auto values = td::Constraint(vocabulary, td::Grammar::json_schema(schema));
  td::TokenMask mask(vocabulary.size());
  values.fill_mask(values.initial(), mask.words());
  return mask;
}
