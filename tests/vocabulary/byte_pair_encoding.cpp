#include <algorithm>
#include <string>
#include <vector>

#include <tooldecode/vocabulary/byte_pair_encoding.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::TokenType;
using Ids    = std::vector<td::TokenId>;
using Merges = std::vector<td::vocabulary::BytePairEncoding::Merge>;

namespace {

Ids encode(const td::vocabulary::BytePairEncoding& pairs, std::string_view text) {
  Ids ids;
  pairs.encode(text, ids);
  return ids;
}

// Reference without a queue: merges the leftmost of the best pairs until none is left.
std::vector<std::string> merge_slowly(const Merges& merges, std::string_view text) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  for (;;) {
    std::size_t best = merges.size();
    std::size_t at   = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = static_cast<std::size_t>(
          std::find(merges.begin(), merges.end(), std::pair(parts[i], parts[i + 1])) -
          merges.begin());
      if (found < best) best = found, at = i;
    }
    if (best == merges.size()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

}  // namespace

TEST_CASE("BytePairEncoding by rank equals a brute-force merge on random merges and texts") {
  std::uint64_t seed = 1;
  const auto draw    = [&](std::size_t below) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(seed >> 33) % below;
  };
  for (int round = 0; round < 200; ++round) {
    INFO("round " << round);
    std::vector<std::string> texts{"a", "b", "c"};
    Merges merges;
    for (int i = 0; i < 12; ++i) {
      const std::string left  = texts[draw(texts.size())];
      const std::string right = texts[draw(texts.size())];
      if (std::find(texts.begin(), texts.end(), left + right) != texts.end()) continue;
      merges.emplace_back(left, right);
      texts.push_back(left + right);
    }
    std::vector<td::Vocabulary::Entry> entries;
    for (const std::string& text : texts) entries.push_back({text});
    const td::Vocabulary vocabulary(entries);
    const td::vocabulary::BytePairEncoding pairs(vocabulary, merges, {});
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (std::size_t n = draw(30); n > 0; --n) text += static_cast<char>('a' + draw(3));
      Ids expected;
      for (const std::string& part : merge_slowly(merges, text)) {
        expected.push_back(vocabulary.find(part).value());
      }
      INFO(text);
      CHECK(encode(pairs, text) == expected);
    }
  }
}

TEST_CASE("BytePairEncoding by score merges the best pair first and the leftmost of equal pairs") {
  const td::Vocabulary vocabulary({{"a"},
                                   {"b"},
                                   {"aa"},
                                   {"ab"},
                                   {"\xC3\xA9"},
                                   {"\xC3", TokenType::byte},
                                   {"\xA8", TokenType::byte},
                                   {"aab"}});
  const td::vocabulary::BytePairEncoding pairs(vocabulary, {0, 0, -1, -1, 0, 0, 0, -5});
  CHECK(encode(pairs, "aaa") == Ids{2, 0});
  CHECK(encode(pairs, "aab") == Ids{7});
  CHECK(encode(pairs, "ab") == Ids{3});
  CHECK(encode(pairs, "a\xC3\xA9") == Ids{0, 4});
  CHECK(encode(pairs, "\xC3\xA8") == Ids{5, 6});
  CHECK(encode(pairs, "").empty());
}

TEST_CASE("BytePairEncoding merges into a user-defined token") {
  const td::Vocabulary vocabulary({{"a"}, {"ab", TokenType::user_defined}, {"b"}, {"abb"}});
  CHECK(encode({vocabulary, Merges{{"a", "b"}, {"ab", "b"}}, {}}, "aabb") == Ids{0, 3});
}

TEST_CASE("BytePairEncoding with whole_first prefers the token of a whole piece to its merges") {
  const td::Vocabulary vocabulary({{"a"}, {"b"}, {"c"}, {"bc"}, {"abc"}, {"ab"}});
  const Merges merges{{"a", "b"}, {"b", "c"}};
  CHECK(encode({vocabulary, merges, {}}, "abc") == Ids{5, 2});
  CHECK(encode({vocabulary, merges, {.whole_first = true}}, "abc") == Ids{4});
}

TEST_CASE("BytePairEncoding throws for text and merges without a token") {
  const td::Vocabulary vocabulary({{"a"}, {"b"}, {"<e>", TokenType::control}});
  CHECK_THROWS_WITH(encode({vocabulary, {}, {}}, "ac"),
                    "byte 99: must have a token of the vocabulary that writes it");
  CHECK_THROWS_WITH(encode({vocabulary, {}, {.whole_first = true}}, "<e>"),
                    "byte 60: must have a token of the vocabulary that writes it");
  CHECK_THROWS_WITH(td::vocabulary::BytePairEncoding(vocabulary, Merges{{"a", "b"}}, {}),
                    "merge 0: must merge two tokens into a third");
  CHECK_THROWS_WITH(td::vocabulary::BytePairEncoding(vocabulary, std::vector<float>{0}),
                    "scores 1: must be one for each token: 3");
}

TEST_CASE("BytePairEncoding encodes a piece of 131072 bytes") {
  std::vector<td::Vocabulary::Entry> entries;
  Merges merges;
  for (std::size_t size = 1; size <= 1024; size *= 2) {
    entries.push_back({std::string(size, 'a')});
    if (size > 1) merges.emplace_back(std::string(size / 2, 'a'), std::string(size / 2, 'a'));
  }
  const td::Vocabulary vocabulary(entries);
  CHECK(encode({vocabulary, merges, {}}, std::string(1 << 17, 'a')) == Ids(128, 10));
}
