#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

/// The definition of find_gumbel without its shortcuts.
std::optional<td::TokenId> slow_gumbel(const std::vector<float>& distribution, td::NoiseKey key) {
  std::optional<td::TokenId> best;
  double best_score = 0;
  for (std::size_t t = 0; t < distribution.size(); ++t) {
    if (distribution[t] == none) continue;
    const auto token   = static_cast<td::TokenId>(t);
    const double u     = td::core::uniform(key.seed, key.position, token);
    const double score = static_cast<double>(distribution[t]) - std::log(-std::log(u));
    if (!best || score > best_score) {
      best       = token;
      best_score = score;
    }
  }
  return best;
}

}  // namespace

TEST_CASE("find_greedy returns the greatest logit and the lowest id of equals") {
  CHECK(td::find_greedy(std::vector{1.0F, 3.0F, 3.0F, none}) == 1);
  CHECK(td::find_greedy(std::vector{none, -1e30F, none}) == 1);
  CHECK_FALSE(td::find_greedy(std::vector{none, none}));
  CHECK_FALSE(td::find_greedy(std::vector<float>{}));
}

TEST_CASE("find_gumbel equals its definition on random rows") {
  std::mt19937 random{2};
  for (std::uint64_t round = 0; round < 300; ++round) {
    INFO("seed 2, round " << round);
    std::normal_distribution<float> normal{0, round % 2 == 0 ? 1.0F : 20.0F};
    std::vector<float> distribution(random() % 300);
    for (float& logit : distribution) logit = random() % 4 == 0 ? none : normal(random);
    const td::NoiseKey key{random(), round};
    CHECK(td::find_gumbel(distribution, key) == slow_gumbel(distribution, key));
  }
  CHECK_FALSE(td::find_gumbel(std::vector{none, none, none, none, none}, {1, 1}));
}

TEST_CASE("find_gumbel keeps its choice when other tokens are forbidden") {
  const std::vector<float> distribution{0.5F, 0.1F, 1.0F, -0.3F, 0.0F, 0.7F};
  for (std::uint64_t position = 0; position < 100; ++position) {
    const auto chosen = td::find_gumbel(distribution, {9, position});
    for (std::size_t gone = 0; gone < distribution.size(); ++gone) {
      if (static_cast<td::TokenId>(gone) == *chosen) continue;
      auto fewer  = distribution;
      fewer[gone] = none;
      CHECK(td::find_gumbel(fewer, {9, position}) == chosen);
    }
  }
}

TEST_CASE(
    "find_gumbel draws follow the distribution over positions and over seeds by chi-squared") {
  const std::vector<float> distribution{2.0F, 1.0F, 0.0F, none, -1.0F, 1.5F, 1.5F, -2.0F, 0.25F};
  double sum = 0;
  for (const float logit : distribution) sum += std::exp(static_cast<double>(logit));
  constexpr int draws = 100'000;
  for (const bool by_seed : {false, true}) {
    std::vector<int> counts(distribution.size(), 0);
    for (std::uint64_t i = 0; i < draws; ++i) {
      const auto key = by_seed ? td::NoiseKey{i, 17} : td::NoiseKey{123, i};
      ++counts[static_cast<std::size_t>(*td::find_gumbel(distribution, key))];
    }
    double chi_squared = 0;
    for (std::size_t t = 0; t < distribution.size(); ++t) {
      const double expected = draws * std::exp(static_cast<double>(distribution[t])) / sum;
      if (expected == 0) {
        CHECK(counts[t] == 0);
      } else {
        chi_squared += (counts[t] - expected) * (counts[t] - expected) / expected;
      }
    }
    // 7 degrees of freedom: a correct generator exceeds 40.5 for one seed in a million; an error of
    // 1 % of the mass in one cell gives 50 or more.
    CHECK(chi_squared < 40.5);
  }
}

TEST_CASE("find_likeliest equals a sort of all tokens with their probabilities") {
  std::mt19937 random{5};
  for (int round = 0; round < 200; ++round) {
    std::vector<float> distribution(1 + random() % 50);
    // Few values make ties; some tokens cannot be drawn.
    for (float& logit : distribution) {
      logit = random() % 4 == 0 ? none : static_cast<float>(random() % 7);
    }
    double sum = 0;
    std::vector<td::TokenId> order;
    for (std::size_t t = 0; t < distribution.size(); ++t) {
      sum += std::exp(static_cast<double>(distribution[t]));
      if (distribution[t] != none) order.push_back(static_cast<td::TokenId>(t));
    }
    const auto logit = [&](td::TokenId t) { return distribution[static_cast<std::size_t>(t)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](td::TokenId a, td::TokenId b) { return logit(a) > logit(b); });
    for (const std::size_t count : {0U, 1U, 3U, 60U}) {
      const auto likeliest = td::find_likeliest(distribution, count);
      REQUIRE(likeliest.size() == std::min(count, order.size()));
      for (std::size_t i = 0; i < likeliest.size(); ++i) {
        CHECK(likeliest[i].token == order[i]);
        const double expected = std::exp(static_cast<double>(logit(order[i]))) / sum;
        CHECK(std::abs(std::exp(likeliest[i].log_probability) - expected) < 1e-6);
      }
    }
  }
}
