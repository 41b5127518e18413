#include <random>
#include <set>

#include <tooldecode/mask/token_mask.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("TokenMask stores token t as bit t % 32 of word t / 32") {
  std::mt19937 random(31);
  TokenMask a(1000), b(1000);
  std::set<TokenId> x, y;
  for (int i = 0; i < 200; ++i) {
    const auto token = static_cast<TokenId>(random() % 1000);
    (i % 2 ? a : b).insert(token);
    (i % 2 ? x : y).insert(token);
  }
  REQUIRE(a.words().size() == 32);
  CHECK(a.count() == x.size());
  for (TokenId t = 0; t < 1000; ++t) {
    REQUIRE(a.contains(t) == (x.count(t) == 1));
    REQUIRE((a.words()[static_cast<std::size_t>(t) / 32] >> (t % 32) & 1) == x.count(t));
  }
  a |= b;
  x.insert(y.begin(), y.end());
  CHECK(a.count() == x.size());
}
