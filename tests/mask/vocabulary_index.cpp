#include <string>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("VocabularyIndex of copies of a vocabulary is one while it is in use") {
  const Vocabulary vocabulary({{"a", TokenType::normal}, {"b", TokenType::normal}});
  const Vocabulary copy = vocabulary;
  std::weak_ptr<mask::SharedStates> states;
  {
    const VocabularyIndex one = vocabulary;
    const VocabularyIndex two = copy;
    states                    = one.states();
    CHECK(one.states() == two.states());
    CHECK(VocabularyIndex(vocabulary, VocabularyIndex::default_budget).states() != one.states());
    CHECK(VocabularyIndex(vocabulary.with_size(5)).states() != one.states());
  }
  CHECK(states.expired());
  CHECK(VocabularyIndex(vocabulary).vocabulary().size() == 2);
}

TEST_CASE(
    "VocabularyIndex copies share states until the budget is spent, and old states stay valid") {
  const Vocabulary vocabulary(
      {{"a", TokenType::normal}, {"\"", TokenType::normal}, {"\",", TokenType::normal}});
  const VocabularyIndex cache{vocabulary};
  const VocabularyIndex copy = cache;
  CHECK(cache.states() == copy.states());
  CHECK(cache.trie().count_below(0) == 3);
  CHECK(cache.vocabulary().size() == 3);

  const VocabularyIndex small(vocabulary, 30'000);
  const auto first = small.states();
  CHECK(small.states() == first);
  Grammar grammar;
  const NodeId text = grammar.lexeme(any_string(ValueSyntax::json, '"'));
  const auto begin  = first->automaton().add(grammar, text);
  (void)first->slice(any_string(ValueSyntax::json, '"'), 1, 0);
  for (unsigned i = 0; first->bytes() <= 30'000; ++i) {
    (void)first->automaton().add(grammar, grammar.literal("word " + std::to_string(i)));
  }
  const auto second = small.states();
  CHECK(second != first);
  CHECK(second->bytes() < first->bytes());
  CHECK(first->automaton().step(begin, '"'));
}
