#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;
using namespace tooldecode::vocabulary;

TEST_CASE("make_trie contains text tokens and control tokens except end tokens") {
  const Vocabulary vocabulary({{"a", TokenType::normal},
                               {"<end>", TokenType::control},
                               {"", TokenType::unused},
                               {"a", TokenType::byte},
                               {"<call>", TokenType::user_defined},
                               {"<think>", TokenType::control},
                               {"<unk>", TokenType::unknown}},
                              {.end_tokens = {1}, .size = 9});
  const ByteTrie trie = make_trie(vocabulary);
  CHECK(trie.count_below(0) == 4);
  CHECK(trie.longest() == 9);
  CHECK(trie.label(trie.children(0).second - 1) == 0xFF);
}
