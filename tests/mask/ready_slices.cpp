#include <cstddef>
#include <memory>
#include <utility>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/table_file.hpp>
#include <tooldecode/mask/lexeme_slice.hpp>
#include <tooldecode/mask/ready_slices.hpp>
#include <tooldecode/mask/token_classes.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/catch.hpp>
#include <support/random_grammar.hpp>
#include <support/random_vocabulary.hpp>

using namespace tooldecode;
using namespace tooldecode::mask;

TEST_CASE(
    "ReadySlices finds a slice by its lexeme's tables, state and node, also when read again") {
  const Vocabulary vocabulary = test::random_vocabulary(1);
  const core::ByteTrie trie   = vocabulary::make_trie(vocabulary);
  const TokenClasses classes(trie, vocabulary.size());
  const auto quoted = test::RandomGrammar::quoted(), run = test::RandomGrammar::run();
  ReadySlices slices;
  CHECK(slices.find(*quoted, 1, 0) == nullptr);
  for (const auto& [dfa, state] :
       {std::pair(quoted, 0U), std::pair(quoted, 1U), std::pair(run, 1U)}) {
    slices.add(*dfa, state, 0,
               std::make_shared<const LexemeSlice>(vocabulary, trie, classes, *dfa, state, 0));
  }
  core::TableWriter tables;
  slices.write(tables);
  core::TableReader from(tables.bytes(), "tables");
  const ReadySlices again(from, trie, classes, vocabulary.size());
  from.require_end();
  REQUIRE(again.size() == 3);
  for (const ReadySlices& all : {slices, again}) {
    const auto equal = test::RandomGrammar::quoted();  // another object with the same tables
    REQUIRE(all.find(*equal, 1, 0) != nullptr);
    CHECK(all.find(*equal, 1, 0)->inside() == slices.find(*quoted, 1, 0)->inside());
    CHECK(all.find(*equal, 1, 0)->inside() != all.find(*equal, 0, 0)->inside());
    CHECK(all.find(*run, 1, 0)->count() == slices.find(*run, 1, 0)->count());
    CHECK(all.find(*equal, 2, 0) == nullptr);
    CHECK(all.find(*equal, 1, 1) == nullptr);
    CHECK(all.find(*run, 0, 0) == nullptr);
  }
}
