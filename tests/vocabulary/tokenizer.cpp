#include <thread>
#include <vector>

#include <tooldecode/vocabulary/tokenizer.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::TokenType;
using Ids = std::vector<td::TokenId>;

namespace {

td::Tokenizer small(bool prefixes_space = false) {
  const td::Vocabulary vocabulary({{"a"},
                                   {"b"},
                                   {" "},
                                   {"ab"},
                                   {"<t>", TokenType::user_defined},
                                   {"<t>a", TokenType::user_defined},
                                   {"<e>", TokenType::control},
                                   {"<"},
                                   {"e"},
                                   {">"},
                                   {" a"}});
  return td::Tokenizer(vocabulary,
                       td::vocabulary::BytePairEncoding(vocabulary, {{"a", "b"}, {" ", "a"}}, {}),
                       td::vocabulary::PreTokenizer({"[ab]+"}), prefixes_space);
}

}  // namespace

TEST_CASE("Tokenizer::encode finds user-defined tokens first and prefers the longest") {
  CHECK(small().encode("ab<t>b") == Ids{3, 4, 1});
  CHECK(small().encode("<t>ab") == Ids{5, 1});
  CHECK(small().encode("<t><t>a<t>") == Ids{4, 5, 4});
  CHECK(small().encode("").empty());
}

TEST_CASE("Tokenizer::encode reads names of control tokens as text unless parse_special is set") {
  CHECK(small().encode("a<e>") == Ids{0, 7, 8, 9});
  CHECK(small().encode("a<e>", {.parse_special = true}) == Ids{0, 6});
  CHECK(small().decode(Ids{0, 6, 4}) == "a<t>");
}

TEST_CASE("Tokenizer::encode adds a space prefix only if tokenizer and caller require it") {
  CHECK(small(true).encode("b") == Ids{1});
  CHECK(small(true).encode("b", {.add_space_prefix = true}) == Ids{2, 1});
  CHECK(small(false).encode("b", {.add_space_prefix = true}) == Ids{1});
  CHECK(small(true).encode("", {.add_space_prefix = true}).empty());
}

TEST_CASE("Tokenizer throws for text and ids outside the vocabulary") {
  CHECK_THROWS_AS(small().encode("a\xFF"), td::Error);
  CHECK_THROWS_AS(small().decode(Ids{11}), td::Error);
}

TEST_CASE("Tokenizer::encode gives the same ids on several threads") {
  const td::Tokenizer tokenizer = small();
  const Ids expected            = tokenizer.encode("ab a<t>ab");
  std::vector<char> same(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < same.size(); ++i) {
    threads.emplace_back([&, i] {
      bool all = true;
      for (int round = 0; round < 200; ++round) {
        all = all && tokenizer.encode("ab a<t>ab") == expected;
      }
      same[i] = all;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(same == std::vector<char>(4, true));
}
