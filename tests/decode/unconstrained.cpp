#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/decode/unconstrained.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("Unconstrained::fill_mask allows exactly the tokens that advance accepts") {
  for (const std::size_t size : {1U, 31U, 32U, 33U, 64U, 100U}) {
    const td::Unconstrained any{size, {0, static_cast<td::TokenId>(size) - 1}};
    for (const auto state : {any.initial(), *any.advance(any.initial(), 0)}) {
      std::vector<std::uint32_t> words((size + 31) / 32, 0xdeadbeefU);
      any.fill_mask(state, words);
      for (std::size_t t = 0; t < 32 * words.size(); ++t) {
        const bool allowed = words[t / 32] >> (t % 32) & 1U;
        CHECK(allowed == any.advance(state, static_cast<td::TokenId>(t)).has_value());
      }
      CHECK(any.is_accepting(state));
      CHECK(any.jump_forward(state).empty());
    }
  }
}

TEST_CASE("Unconstrained after an end token is finished and allows end tokens only") {
  const td::Unconstrained any{10, {3, 7}};
  CHECK_FALSE(any.is_finished(any.initial()));
  CHECK_FALSE(any.is_finished(*any.advance(any.initial(), 1)));
  const auto finished = *any.advance(any.initial(), 3);
  CHECK(any.is_finished(finished));
  CHECK(any.advance(finished, 7));
  CHECK_FALSE(any.advance(finished, 1));
  CHECK_FALSE(any.advance(any.initial(), -1));
  CHECK_FALSE(any.advance(any.initial(), 10));
}
