#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/model/constrained_head.hpp>

#include <support/catch.hpp>
#include <support/random_llama.hpp>

namespace td = tooldecode;

TEST_CASE("ConstrainedHead::fill_logits has the bits of the model's logits for allowed tokens") {
  std::mt19937 random{7};
  const td::LlamaModel model = td::test::random_llama(7);
  const td::ConstrainedHead head(model);
  const std::size_t size = model.vocabulary_size();
  REQUIRE(head.vocabulary_size() == size);
  REQUIRE(head.hidden_size() == model.hidden_size());
  constexpr float none = -std::numeric_limits<float>::infinity();

  std::vector<td::TokenId> tokens;
  for (int round = 0; round < 60; ++round) {
    INFO("seed 7, round " << round);
    tokens.push_back(static_cast<td::TokenId>(random() % size));
    auto cache = model.make_cache();
    std::vector<float> expected(size);
    model.forward(cache, tokens, expected);
    auto other = model.make_cache();
    std::vector<float> hidden(tokens.size() * model.hidden_size());
    model.forward_hidden(other, tokens, hidden);

    // Each token with a chance of 0 to 10 tenths.
    td::TokenMask mask(size);
    const auto chance = static_cast<unsigned>(round) % 11;
    for (std::size_t t = 0; t < size; ++t) {
      if (random() % 10 < chance) mask.insert(static_cast<td::TokenId>(t));
    }
    std::vector<float> logits(size, 3.0F);
    head.fill_logits(std::span(hidden).last(model.hidden_size()), mask.words(), logits);
    for (std::size_t t = 0; t < size; ++t) {
      CHECK(logits[t] == (mask.contains(static_cast<td::TokenId>(t)) ? expected[t] : none));
    }
  }
}
