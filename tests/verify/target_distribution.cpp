#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <tooldecode/verify/target_distribution.hpp>

#include <support/catch.hpp>
#include <support/softmax.hpp>

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
