#include <cstddef>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/mask/mask_parts.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::mask;

namespace {

constexpr std::size_t V = 6000;

std::vector<TokenId> random_tokens(std::mt19937& random, std::size_t count) {
  std::set<TokenId> tokens;
  while (tokens.size() < count) tokens.insert(static_cast<TokenId>(random() % V));
  return {tokens.begin(), tokens.end()};
}
TokenMask mask_of(const std::vector<TokenId>& tokens) {
  TokenMask mask(V);
  for (const TokenId token : tokens) mask.insert(token);
  return mask;
}

}  // namespace

TEST_CASE("MaskParts::entry is the union of its parts, however they are stored") {
  std::size_t listed = 0, own = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<TokenMask> ready;
    for (std::size_t i = 0; i < 4; ++i) {
      ready.push_back(mask_of(random_tokens(random, random() % 2 == 0 ? 100 : 2500)));
    }
    TokenMask expected(V);
    // Adds some parts, and their union without `apart` to `expected`.
    const auto fill = [&](MaskParts& parts, const std::vector<TokenId>& apart) {
      TokenMask all(V);
      for (const TokenId token : random_tokens(random, random() % 4 == 0 ? 1500 : random() % 40)) {
        parts.add(token);
        all.insert(token);
      }
      for (std::size_t n = random() % 4; n > 0; --n) {
        const TokenMask& base = ready[random() % ready.size()];
        std::vector<TokenId> removed;
        base.for_each([&](TokenId token) {
          if (random() % 50 == 0) removed.push_back(token);
        });
        TokenMask rest = base;
        for (const TokenId token : removed) rest.erase(token);
        all |= rest;
        parts.add_base(base, base.count(), removed, {});
      }
      for (const TokenId token : apart) all.erase(token);
      expected |= all;
    };
    MaskParts parts(V);
    fill(parts, {});
    for (std::size_t n = random() % 3; n > 0; --n) {
      MaskParts inner(V);
      const auto apart = random_tokens(random, random() % 60);
      fill(inner, apart);
      parts.add(std::move(inner), apart);
    }
    const MaskEntry entry = std::move(parts).entry();
    TokenMask made        = mask_of(random_tokens(random, 10));  // what was there does not matter
    entry.fill(made.words());
    REQUIRE(made == expected);
    CHECK(entry.added.size() < MaskParts::max_listed);
    CHECK(entry.removed.size() <= MaskParts::max_listed);
    ++(entry.own ? own : listed);
  }
  CHECK(listed > 50);
  CHECK(own > 50);
}

TEST_CASE("MaskParts with one ready mask keeps it as the base, with lists beside it") {
  const TokenMask ready = mask_of({1, 2, 3, 4000});
  MaskParts parts(V);
  parts.add(7);
  parts.add(7);
  parts.add(2);
  parts.add_base(ready, 4, {3}, std::vector<TokenId>{5, 4000});
  parts.add_base(ready, 4, {3}, std::vector<TokenId>{4000});
  const MaskEntry entry = std::move(parts).entry();
  TokenMask made(V);
  entry.fill(made.words());
  CHECK(made == mask_of({1, 2, 7}));
  CHECK(entry.base == &ready);
  CHECK(std::set<TokenId>(entry.added.begin(), entry.added.end()) == std::set<TokenId>{7});
  CHECK(entry.removed == std::vector<TokenId>{3, 4000});
}

TEST_CASE("MaskEntry::update makes of another entry's mask what fill writes") {
  std::size_t listed = 0, same_base = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const TokenMask one   = mask_of(random_tokens(random, 2500)),
                    other = mask_of(random_tokens(random, 100));
    const auto entry      = [&] {
      const TokenMask* bases[] = {nullptr, &one, &other};
      const std::size_t most   = random() % 4 == 0 ? 200 : 12;
      return MaskEntry{.base    = bases[random() % 3],
                            .removed = random_tokens(random, random() % most),
                            .added   = random_tokens(random, random() % most)};
    };
    const MaskEntry shown = entry(), next = entry();
    TokenMask expected(V), made(V);
    next.fill(expected.words());
    shown.fill(made.words());
    next.update(shown, made.words());
    REQUIRE(made == expected);
    next.update(next, made.words());
    REQUIRE(made == expected);
    same_base += shown.base == next.base;
    listed += shown.base == next.base && shown.added.size() + next.added.size() < 12;
  }
  CHECK(same_base > 50);
  CHECK(listed > 20);
}

TEST_CASE("MaskEntry::update leaves a row alone where entries of one base do not differ") {
  const TokenMask ready = mask_of({1, 2, 3, 4000});
  const MaskEntry shown{.base = &ready, .removed = {3}, .added = {7}};
  const MaskEntry next{.base = &ready, .removed = {2}, .added = {9}};
  TokenMask made(V);
  shown.fill(made.words());
  made.insert(5000);  // not the mask's: fill would clear it
  next.update(shown, made.words());
  CHECK(made == mask_of({1, 3, 9, 4000, 5000}));
  next.update(next, made.words());
  CHECK(made == mask_of({1, 3, 9, 4000, 5000}));
}
