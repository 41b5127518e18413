#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include <tooldecode/core/philox.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {
using Words = std::array<std::uint32_t, 4>;
}

TEST_CASE("philox returns the known answers of Random123 for Philox4x32-10") {
  static_assert(td::core::philox({0, 0, 0, 0}, {0, 0}) ==
                Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(td::core::philox({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(td::core::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform depends on all bits of seed and position and on the token") {
  const double base = td::core::uniform(1, 2, 3);
  CHECK(base == td::core::uniform(1, 2, 3));
  CHECK(base != td::core::uniform(2, 2, 3));
  CHECK(base != td::core::uniform(1, 3, 3));
  CHECK(base != td::core::uniform(1, 2, 4));
  CHECK(td::core::uniform(std::uint64_t{1} << 32, 2, 3) != td::core::uniform(0, 2, 3));
  CHECK(td::core::uniform(1, std::uint64_t{1} << 32, 3) != td::core::uniform(1, 0, 3));
  CHECK(td::core::uniform(7, 5, 6) ==
        td::core::unit_interval(td::core::philox({1, 5, 0, 0}, {7, 0})[2]));
}

TEST_CASE(
    "uniform puts the stream into the last counter word and uses the target stream by default") {
  using enum td::core::NoiseStream;
  CHECK(td::core::uniform(7, 5, 6, target) == td::core::uniform(7, 5, 6));
  CHECK(td::core::uniform(7, 5, 6, coins) ==
        td::core::unit_interval(td::core::philox({1, 5, 0, 1}, {7, 0})[2]));
  CHECK(td::core::uniform(7, 5, 6, drafts) ==
        td::core::unit_interval(td::core::philox({1, 5, 0, 2}, {7, 0})[2]));
}

TEST_CASE("unit_interval excludes 0 and 1 and gumbel is finite at its ends") {
  CHECK(td::core::unit_interval(0) == 0x1p-33);
  CHECK(td::core::unit_interval(0xffffffff) == 1.0 - 0x1p-33);
  CHECK(std::abs(td::core::gumbel(0) + std::log(33.0 * std::log(2.0))) < 1e-12);
  CHECK(std::abs(td::core::gumbel(0xffffffff) - 33.0 * std::log(2.0)) < 1e-6);
}

TEST_CASE("gumbel_bound is greater than gumbel for words of every number of leading ones") {
  for (std::uint32_t leading = 0; leading <= 32; ++leading) {
    const std::uint32_t ones = leading == 0 ? 0 : ~std::uint32_t{0} << (32 - leading);
    for (const std::uint32_t rest : {0U, 1U, 0x12345678U, 0x7fffffffU, 0xffffffffU}) {
      const std::uint32_t word = ones | (leading < 32 ? rest >> leading : 0);
      CHECK(td::core::gumbel(word) < td::core::gumbel_bound(word));
    }
  }
}

TEST_CASE(
    "uniform returns different numbers for neighbouring seeds, positions, tokens and streams") {
  using enum td::core::NoiseStream;
  std::set<double> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t position = 0; position < 10; ++position) {
      for (td::TokenId token = 0; token < 64; ++token) {
        for (const auto stream : {target, coins, drafts})
          seen.insert(td::core::uniform(seed, position, token, stream));
      }
    }
  }
  // 19,200 draws out of 2^32 collide with probability 4 %; these do not.
  CHECK(seen.size() == 19'200);
}
