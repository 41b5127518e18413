#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/prefix_cache.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;

namespace {

using Tokens = std::vector<td::TokenId>;
using Prefix = td::PrefixCache;
using Cache  = td::test::RandomModel::Cache;

Tokens random_tokens(std::mt19937& random) {
  Tokens tokens(1 + random() % 12);
  for (auto& token : tokens) token = static_cast<td::TokenId>(random() % 2);
  return tokens;
}

std::size_t common(const Tokens& a, const Tokens& b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

td::CachedPrefix read(const Tokens& tokens, std::vector<float> states = {}) {
  return {td::ModelRef::Cache(Cache{tokens, {}}), std::move(states)};
}

}  // namespace

TEST_CASE(
    "PrefixCache::find gives the longest beginning that a cached sequence shares with the prompt") {
  const td::test::RandomModel model{50};
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    Prefix prefixes{model, 1'000'000};
    std::vector<Tokens> kept;
    for (int i = 0; i < 30; ++i) {
      const Tokens tokens = random_tokens(random);
      if (random() % 2 == 0) {
        prefixes.insert(tokens, read(tokens));
        kept.push_back(tokens);
        continue;
      }
      std::size_t max = 0;
      for (const Tokens& other : kept) max = std::max(max, common(other, tokens));
      max              = std::min(max, tokens.size() - 1);
      const auto found = prefixes.find(tokens);
      REQUIRE(found.has_value() == (max > 0));
      if (found)
        REQUIRE(found->cache.as<Cache>().tokens ==
                Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(max)));
    }
  }
}

TEST_CASE("PrefixCache keeps a sequence once when another extends it") {
  const td::test::RandomModel model{50};
  Prefix prefixes{model, 100};
  prefixes.insert(Tokens{1, 2, 3}, read({1, 2, 3}));
  prefixes.insert(Tokens{1, 2, 3, 4}, read({1, 2, 3, 4}));
  CHECK(prefixes.size() == 4);
  prefixes.insert(Tokens{1, 2}, read({1, 2}));
  CHECK(prefixes.size() == 4);
  prefixes.insert(Tokens{1, 5}, read({1, 5}));
  CHECK(prefixes.size() == 6);
}

TEST_CASE("PrefixCache removes the least recently used sequences first") {
  const td::test::RandomModel model{50};
  Prefix prefixes{model, 9};
  for (td::TokenId first = 1; first <= 3; ++first) {
    prefixes.insert(Tokens{first, 7, 8}, read({first, 7, 8}));
  }
  CHECK(prefixes.find(Tokens{1, 7, 9}));
  prefixes.insert(Tokens{4, 7}, read({4, 7}));
  CHECK(prefixes.size() == 8);
  CHECK_FALSE(prefixes.find(Tokens{2, 7, 9}));
  CHECK(prefixes.find(Tokens{1, 7, 9}));
  CHECK(prefixes.find(Tokens{3, 7, 9}));
  prefixes.insert(Tokens(10, 5), read(Tokens(10, 5)));  // more than there is room for
  CHECK(prefixes.size() == 8);
}

TEST_CASE("PrefixCache without room keeps nothing") {
  const td::test::RandomModel model{50};
  Prefix prefixes{model, 0};
  prefixes.insert(Tokens{1, 2}, read({1, 2}));
  CHECK_FALSE(prefixes.find(Tokens{1, 2}));
}

TEST_CASE("PrefixCache keeps hidden states with their cache, as many as its tokens") {
  const td::test::RandomModel model{50};
  Prefix prefixes{model, 100};
  prefixes.insert(Tokens{1, 2, 3}, read({1, 2, 3}, {10, 11, 20, 21, 30, 31}));
  const auto shorter = prefixes.find(Tokens{1, 2, 4, 5});
  REQUIRE(shorter);
  CHECK(shorter->cache.as<Cache>().tokens == Tokens{1, 2});
  CHECK(shorter->states == std::vector<float>{10, 11, 20, 21});
  const auto longer = prefixes.find(Tokens{1, 2, 3, 5});
  REQUIRE(longer);
  CHECK(longer->states == std::vector<float>{10, 11, 20, 21, 30, 31});
}
