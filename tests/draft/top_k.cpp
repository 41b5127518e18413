#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/draft/top_k.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("TopK over several parts takes the k likeliest as a sort does, ties by id") {
  std::mt19937 random{1};
  for (int round = 0; round < 200; ++round) {
    INFO("seed 1, round " << round);
    const std::size_t size = 1 + random() % 100;
    const std::size_t k    = random() % 12;
    std::vector<td::TokenId> tokens(size);
    for (std::size_t i = 0; i < size; ++i) tokens[i] = static_cast<td::TokenId>(i * 3);
    std::shuffle(tokens.begin(), tokens.end(), random);
    std::vector<float> logits(size);
    for (float& x : logits) {
      x = random() % 8 == 0 ? -std::numeric_limits<float>::infinity()
                            : static_cast<float>(static_cast<int>(random() % 7)) - 3.0F;
    }

    td::draft::TopK top(k);
    for (std::size_t begin = 0; begin < size;) {
      const std::size_t count = std::min<std::size_t>(random() % 40, size - begin);
      top.add(std::span(tokens).subspan(begin, count), std::span(logits).subspan(begin, count));
      begin += count;
    }
    const td::draft::TopTokens result = std::move(top).take();

    std::vector<td::draft::ScoredToken> expected;
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      sum += std::exp(static_cast<double>(logits[i]));
      if (std::isfinite(logits[i])) expected.push_back({tokens[i], logits[i]});
    }
    std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    });
    expected.resize(std::min(k, expected.size()));
    CHECK(result.tokens == expected);
    if (sum > 0) {
      CHECK(std::abs(result.log_sum_exp - std::log(sum)) < 1e-6);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double exact = static_cast<double>(expected[i].logit) - std::log(sum);
        CHECK(std::abs(static_cast<double>(result.log_probability(i)) - exact) < 1e-5);
      }
    } else {
      CHECK(result.log_sum_exp == -std::numeric_limits<double>::infinity());
    }
  }
}

TEST_CASE("TopK of logits far apart neither overflows nor underflows") {
  const std::vector<td::TokenId> tokens{0, 1};
  for (const std::vector<float>& logits :
       {std::vector<float>{-1e30F, 1e30F}, {1e30F, -1e30F}, {90.0F, 3e4F}}) {
    td::draft::TopK top(1);
    for (std::size_t i = 0; i < 2; ++i) {
      top.add(std::span(tokens).subspan(i, 1), std::span(logits).subspan(i, 1));
    }
    const td::draft::TopTokens result = std::move(top).take();
    CHECK(result.log_sum_exp == static_cast<double>(std::max(logits[0], logits[1])));
    CHECK(result.log_probability(0) == 0.0F);
  }
}
