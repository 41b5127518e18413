#include <tooldecode/constraint/mask_cache.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("Copies share slices, and equal lexemes are one") {
  const Vocabulary vocabulary(
      {{"a", TokenType::normal}, {"\"", TokenType::normal}, {"\",", TokenType::normal}});
  const MaskCache cache{vocabulary};
  const MaskCache copy   = cache;
  const DfaPointer& text = any_string(ValueSyntax::json, '"');
  const auto twin        = std::make_shared<const Dfa>(text->rows());
  CHECK(&cache.slice(text, 1, 0) == &copy.slice(twin, 1, 0));
  CHECK(&cache.slice(text, 1, 0) != &cache.slice(any_string(ValueSyntax::python, '"'), 1, 0));
  CHECK(cache.trie().count_below(0) == 3);
  CHECK(cache.vocabulary().size() == 3);
}
