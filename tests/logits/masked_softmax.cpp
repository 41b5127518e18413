#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <tooldecode/logits/masked_softmax.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("fill_masked_softmax equals a reference in long double on random rows") {
  std::mt19937 random{1};
  std::normal_distribution<float> normal{0, 5};
  for (int round = 0; round < 200; ++round) {
    INFO("seed 1, round " << round);
    const std::size_t size = 1 + random() % 200;
    std::vector<float> logits(size);
    for (float& logit : logits) logit = normal(random) + 80.0F * static_cast<float>(round % 3 - 1);
    std::vector<std::uint32_t> mask((size + 31) / 32);
    for (auto& word : mask) word = static_cast<std::uint32_t>(random() & random());
    std::vector<float> actual(size, -1);
    const bool drawable = td::fill_masked_softmax(logits, mask, actual);

    std::vector<long double> expected(size, 0);
    long double sum = 0;
    for (std::size_t t = 0; t < size; ++t) {
      if (mask[t / 32] >> (t % 32) & 1U)
        expected[t] = std::exp(static_cast<long double>(logits[t]));
      sum += expected[t];
    }
    CHECK(drawable == (sum > 0));
    for (std::size_t t = 0; t < size; ++t) {
      const auto p = static_cast<double>(sum > 0 ? expected[t] / sum : 0);
      CHECK(std::abs(static_cast<double>(actual[t]) - p) <= 2e-6 * p + 1e-30);
      if (expected[t] == 0) CHECK(actual[t] == 0);
    }
  }
}

TEST_CASE("fill_masked_softmax returns false and zeros for a row without allowed tokens") {
  const float none = -std::numeric_limits<float>::infinity();
  std::vector<float> out(3, 7.0F);
  CHECK_FALSE(td::fill_masked_softmax(std::vector{1.0F, 2.0F, 3.0F}, std::vector{0U}, out));
  CHECK(out == std::vector{0.0F, 0.0F, 0.0F});
  CHECK_FALSE(td::fill_masked_softmax(std::vector{1.0F, none, 3.0F}, std::vector{2U}, out));
  CHECK(out == std::vector{0.0F, 0.0F, 0.0F});
  CHECK(td::fill_masked_softmax(std::vector{1e30F, none, -1e30F}, std::vector{7U}, out));
  CHECK(out == std::vector{1.0F, 0.0F, 0.0F});
}

TEST_CASE("log_sum_exp is exact for huge and infinite logits") {
  const float none = -std::numeric_limits<float>::infinity();
  CHECK(std::abs(td::log_sum_exp(std::vector{0.0F, 0.0F}) - std::log(2.0)) < 1e-15);
  CHECK(td::log_sum_exp(std::vector{1e30F, -1e30F}) == static_cast<double>(1e30F));
  CHECK(td::log_sum_exp(std::vector{none, 3.0F}) == 3.0);
  CHECK(std::isinf(td::log_sum_exp(std::vector{none, none})));
}
