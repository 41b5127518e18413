// The smallest constraint: one regular expression, no JSON.
#include <string>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace td = tooldecode;

td::TokenMask first_mask(const td::Vocabulary& vocabulary, const std::string& pattern) {
  const td::Constraint texts(vocabulary, td::Grammar::regex(pattern));
  td::TokenMask mask(vocabulary.size());
  texts.fill_mask(texts.initial(), mask.words());
  return mask;
}
