#include <random>
#include <set>
#include <vector>

#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/token_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("TokenTrie allows a token exactly where some name continues with it") {
  std::mt19937 random(51);
  const Vocabulary vocabulary({{"a", TokenType::normal},
                               {"b", TokenType::normal},
                               {"c", TokenType::normal},
                               {"<end>", TokenType::control}},
                              {.end_tokens = {3}});
  for (int round = 0; round < 100; ++round) {
    INFO("round " << round);
    std::set<std::vector<TokenId>> names;
    for (int i = 0; i < 6; ++i) {
      std::vector<TokenId> name(1 + random() % 4);
      for (TokenId& token : name) token = static_cast<TokenId>(random() % 3);
      names.insert(name);
    }
    const std::vector<std::vector<TokenId>> list(names.begin(), names.end());
    const TokenTrie trie(vocabulary, list);
    std::vector<std::pair<std::vector<TokenId>, TokenTrie::State>> work{{{}, trie.initial()}};
    TokenMask mask(4);
    for (std::size_t i = 0; i < work.size(); ++i) {
      const auto [path, state] = work[i];
      trie.fill_mask(state, mask.words());
      REQUIRE(trie.is_accepting(state) == (names.count(path) == 1));
      for (TokenId t = 0; t < 4; ++t) {
        auto longer = path;
        longer.push_back(t);
        bool expected = t == 3 && names.count(path) == 1;
        for (const auto& name : names) {
          expected = expected || (name.size() >= longer.size() &&
                                  std::equal(longer.begin(), longer.end(), name.begin()));
        }
        const auto next = trie.advance(state, t);
        REQUIRE(next.has_value() == expected);
        REQUIRE(mask.contains(t) == expected);
        if (next && t != 3) work.emplace_back(longer, *next);
        if (next && t == 3) {
          REQUIRE(trie.is_finished(*next));
          trie.fill_mask(*next, mask.words());
          REQUIRE(mask.count() == 1);
          trie.fill_mask(state, mask.words());
        }
      }
    }
  }
  const std::vector<std::vector<TokenId>> one{{0, 1, 2}};
  CHECK(TokenTrie(vocabulary, one).jump_forward({}) == "abc");
  const std::vector<std::vector<TokenId>> wrong{{0, 9}};
  CHECK_THROWS_WITH(
      TokenTrie(vocabulary, wrong),
      "name 0: token 9 must be in the vocabulary, below " + std::to_string(vocabulary.size()));
}

TEST_CASE("TokenTrie of texts and an encoder is the trie of their tokens") {
  const Vocabulary vocabulary({{"a", TokenType::normal},
                               {"b", TokenType::normal},
                               {"ab", TokenType::normal},
                               {"<end>", TokenType::control}},
                              {.end_tokens = {3}});
  const std::vector<std::string> names{"ab", "b"};
  const auto encode = [](std::string_view name) {
    return name == "ab" ? std::vector<TokenId>{2} : std::vector<TokenId>{1};
  };
  const TokenTrie trie(vocabulary, names, encode);
  CHECK(trie.next(trie.initial()) == std::vector<TokenId>{1, 2});
  CHECK(trie.find_name(*trie.advance(trie.initial(), 2)) == 0);
  std::vector<std::uint32_t> none;
  CHECK_THROWS_WITH(trie.fill_mask(trie.initial(), none),
                    "words 0: must be at least ceil(V / 32) words: 1");
}

TEST_CASE("TokenTrie refuses a name that holds an end token") {
  const Vocabulary vocabulary({{"a", TokenType::normal}, {"<end>", TokenType::control}},
                              {.end_tokens = {1}});
  const std::vector<std::vector<TokenId>> names{{0, 1}};
  CHECK_THROWS_WITH(TokenTrie(vocabulary, names), "name 0: token 1 must be no end token");
}
