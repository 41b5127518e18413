#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/verify/target_distribution.hpp>

#include <support/catch.hpp>
#include <support/softmax.hpp>
#include <support/statistics.hpp>

namespace td = tooldecode;

namespace {
constexpr float none = -std::numeric_limits<float>::infinity();
}

TEST_CASE("TargetDistribution's probabilities equal a softmax in long double") {
  std::mt19937 random{21};
  std::normal_distribution<float> normal{0, 8};
  for (int round = 0; round < 200; ++round) {
    INFO("seed 21, round " << round);
    std::vector<float> logits(1 + random() % 200);
    for (float& logit : logits) logit = random() % 3 == 0 ? none : normal(random);
    logits[random() % logits.size()] = 3;
    const td::verify::TargetDistribution distribution{logits, 0.7F};
    const auto wanted = td::test::softmax(distribution);
    std::vector<double> got(logits.size());
    REQUIRE(distribution.fill_probabilities(got));
    for (std::size_t t = 0; t < logits.size(); ++t) {
      CHECK(std::abs(got[t] - wanted[t]) < 1e-14);
      CHECK((got[t] == 0) == (logits[t] == none || wanted[t] == 0));
    }
    CHECK(std::abs(std::accumulate(got.begin(), got.end(), 0.0) - 1) < 1e-13);
  }
}

TEST_CASE("TargetDistribution at temperature 0 gives the first greatest logit probability 1") {
  const std::vector<float> logits{1, none, 4, 4, -2};
  const td::verify::TargetDistribution distribution{logits, 0};
  std::vector<double> p(5);
  CHECK(distribution.fill_probabilities(p));
  CHECK(p == std::vector<double>{0, 0, 1, 0, 0});
}

TEST_CASE("TargetDistribution gives probability 0 where nothing is allowed") {
  const std::vector<float> logits{none, none};
  for (const float temperature : {0.0F, 1.0F}) {
    const td::verify::TargetDistribution distribution{logits, temperature};
    std::vector<double> p{3, 4};
    CHECK_FALSE(distribution.fill_probabilities(p));
    CHECK(p == std::vector<double>{0, 0});
  }
}

TEST_CASE("TargetDistribution of logits as far apart as the pipeline allows has no NaN") {
  const std::vector<float> logits{1e36F, -1e36F, 1e36F};
  const td::verify::TargetDistribution distribution{logits, 1e-6F};
  std::vector<double> p(3);
  CHECK(distribution.fill_probabilities(p));
  CHECK(p == std::vector<double>{0.5, 0, 0.5});
}

namespace {

/// The definition of a draw by weights without its shortcuts.
std::optional<td::TokenId> slow_draw(const std::vector<double>& weights, td::NoiseKey key) {
  std::optional<td::TokenId> first;
  double best = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    if (weights[t] == 0) continue;
    const auto token  = static_cast<td::TokenId>(t);
    const double time = -std::log(td::core::uniform(key.seed, key.position, token)) / weights[t];
    if (!first || time < best) {
      first = token;
      best  = time;
    }
  }
  return first;
}

}  // namespace

TEST_CASE("PositionNoise::draw from a target distribution is the draw of plain decoding") {
  std::mt19937 random{31};
  std::normal_distribution<float> normal;
  for (std::uint64_t round = 0; round < 200; ++round) {
    INFO("seed 31, round " << round);
    std::vector<float> logits(1 + random() % 40);
    for (float& logit : logits) logit = normal(random);
    const td::NoiseKey key{round, random()};
    CHECK(td::verify::PositionNoise(key).draw(td::verify::TargetDistribution{logits, 0}) ==
          td::find_greedy(logits));
    CHECK(td::verify::PositionNoise(key).draw(td::verify::TargetDistribution{logits, 0.7F}) ==
          td::find_gumbel(logits, key));
  }
}

TEST_CASE("PositionNoise::draw by weights equals its definition at any scale") {
  std::mt19937 random{32};
  std::exponential_distribution<double> weight;
  for (std::uint64_t round = 0; round < 400; ++round) {
    INFO("seed 32, round " << round);
    std::vector<double> weights(random() % 300);
    const double scale = std::pow(10.0, static_cast<double>(random() % 40) - 30);
    for (double& w : weights) w = random() % 3 == 0 ? 0.0 : weight(random) * scale;
    const td::NoiseKey key{random(), round};
    CHECK(td::verify::PositionNoise(key).draw(std::span<const double>(weights)) ==
          slow_draw(weights, key));
  }
  const std::vector<double> nothing(9, 0.0);
  CHECK_FALSE(td::verify::PositionNoise({1, 2}).draw(std::span<const double>(nothing)));
}

TEST_CASE(
    "PositionNoise draws and coins of one position are independent and have their distributions") {
  const std::vector<double> weights{3, 0, 1, 2, 0.5, 6, 0, 2.5};
  const double first  = 0.3;
  const double second = 0.6;
  std::vector<double> distribution;  // [first coin, second coin, token]
  for (const double a : {1 - first, first}) {
    for (const double b : {1 - second, second}) {
      for (const double w : weights) distribution.push_back(a * b * w / 15);
    }
  }
  std::vector<std::size_t> counts(distribution.size());
  for (std::uint64_t position = 0; position < 100'000; ++position) {
    td::verify::PositionNoise noise({77, position});
    const bool a     = noise.accept(first);
    const bool b     = noise.accept(second);
    const auto token = noise.draw(std::span<const double>(weights));
    ++counts[(2 * a + b) * weights.size() + static_cast<std::size_t>(*token)];
  }
  CHECK(td::test::p_value(counts, distribution) > 1e-6);
}

TEST_CASE("PositionNoise::accept compares successive numbers of its stream strictly") {
  for (std::uint64_t position = 0; position < 100; ++position) {
    for (td::TokenId i = 0; i < 6; ++i) {
      const double coin = td::core::uniform(5, position, i, td::core::NoiseStream::coins);
      td::verify::PositionNoise below({5, position});
      td::verify::PositionNoise above({5, position});
      for (td::TokenId spent = 0; spent < i; ++spent) {
        static_cast<void>(below.accept(0.5));
        static_cast<void>(above.accept(0.5));
      }
      CHECK_FALSE(below.accept(coin));
      CHECK(above.accept(std::nextafter(coin, 1.0)));
    }
  }
}

TEST_CASE("PositionNoise::accept never accepts probability 0 and never refuses probability 1") {
  td::verify::PositionNoise noise({1, 2});
  std::size_t wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    wrong += noise.accept(0);
    wrong += noise.accept(-1);
    wrong += noise.accept(std::numeric_limits<double>::quiet_NaN());
    wrong += !noise.accept(1);
    wrong += !noise.accept(std::numeric_limits<double>::infinity());
  }
  CHECK(wrong == 0);
}

TEST_CASE("chi_squared_tail has the values of printed tables") {
  using td::test::chi_squared_tail;
  CHECK(std::abs(chi_squared_tail(3.841459, 1) / 0.05 - 1) < 1e-5);
  CHECK(std::abs(chi_squared_tail(5.991465, 2) / 0.05 - 1) < 1e-5);
  CHECK(std::abs(chi_squared_tail(11.344867, 3) / 0.01 - 1) < 1e-5);
  CHECK(std::abs(chi_squared_tail(18.307038, 10) / 0.05 - 1) < 1e-5);
  CHECK(std::abs(chi_squared_tail(37.697298, 15) / 0.001 - 1) < 1e-5);
  CHECK(std::abs(chi_squared_tail(124.342113, 100) / 0.05 - 1) < 1e-5);
  CHECK(chi_squared_tail(0, 5) == 1);
  CHECK(chi_squared_tail(1e5, 200) == 0);
}
