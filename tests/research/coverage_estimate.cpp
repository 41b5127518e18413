#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/research/coverage_estimate.hpp>

#include <support/catch.hpp>
#include <support/random_llama.hpp>
#include <support/random_rounds.hpp>

namespace td = tooldecode;
using td::draft::CoverageEstimate;
using td::draft::HeadCosts;

namespace {

constexpr std::size_t vocabulary = 4096;

/// A text whose ranks follow a power distribution, and a drafter that finds what its head has, less often
/// at deeper levels.
struct Simulation {
  double power       = 1;
  double finds       = 0.8;
  double rest        = 1;  ///< seconds of a round without its products
  std::size_t levels = 4;

  [[nodiscard]] std::size_t draw_rank(std::mt19937& random) const {
    std::uniform_real_distribution<double> uniform(0, 1);
    // Of a density rank^-power over [1, V + 1).
    const double u = uniform(random), end = vocabulary + 1.0;
    const double x = power == 1 ? std::pow(end, u)
                                : std::pow(1 + u * (std::pow(end, 1 - power) - 1), 1 / (1 - power));
    return std::min(static_cast<std::size_t>(x) - 1, vocabulary - 1);
  }

  /// One round with a size; returns its number of tokens.
  std::size_t round(CoverageEstimate& learnt, std::size_t size, std::mt19937& random) const {
    std::uniform_real_distribution<double> uniform(0, 1);
    std::size_t tokens = 0;
    bool is_on_path    = true;
    while (is_on_path) {
      const std::size_t rank = draw_rank(random);
      learnt.count_token(rank, vocabulary);
      ++tokens;
      if (tokens > levels) break;
      const bool has   = learnt.has(size, rank, vocabulary);
      const bool found = has && uniform(random) < finds;
      if (has) learnt.count_level(tokens, found);
      is_on_path = found;
    }
    learnt.count_round(size, levels, seconds(learnt.costs(), size));
    return tokens;
  }
  [[nodiscard]] double seconds(const HeadCosts& costs, std::size_t size) const {
    return rest +
           static_cast<double>(levels) * costs.seconds(static_cast<double>(costs.rows(size)));
  }
};

HeadCosts costs_of(double seconds_of_all) {
  std::vector<HeadCosts::Measurement> known;
  for (std::size_t rows = 64; rows <= vocabulary; rows *= 2) {
    known.emplace_back(rows, seconds_of_all * static_cast<double>(rows) / vocabulary);
  }
  return HeadCosts(known);
}

}  // namespace

TEST_CASE("CoverageEstimate::best is the fastest size of a simulation that runs each") {
  std::vector<std::size_t> chosen;
  for (const double power : {0.5, 1.0, 1.5}) {
    for (const double head : {0.01, 0.2, 2.0}) {
      const Simulation text{.power = power};
      INFO("power " << power << ", head " << head);
      const HeadCosts costs = costs_of(head);
      std::vector<double> rates;
      for (std::size_t size = 0; size < costs.size(); ++size) {
        std::mt19937 random{5};
        CoverageEstimate ignored(costs);
        std::size_t tokens = 0;
        for (int i = 0; i < 20'000; ++i) tokens += text.round(ignored, size, random);
        rates.push_back(static_cast<double>(tokens) / (20'000 * text.seconds(costs, size)));
      }
      std::mt19937 random{6};
      CoverageEstimate learnt(costs);
      for (int i = 0; i < 3'000; ++i) text.round(learnt, learnt.best(), random);
      CHECK(rates[learnt.best()] > 0.98 * *std::ranges::max_element(rates));
      chosen.push_back(learnt.best());
    }
  }
  CHECK(*std::ranges::min_element(chosen) < 3);
  CHECK(*std::ranges::max_element(chosen) >= 5);
}

TEST_CASE("CoverageEstimate::best follows a text whose ranks change") {
  std::mt19937 random{7};
  const HeadCosts costs = costs_of(0.2);
  CoverageEstimate learnt(costs);
  CHECK(learnt.best() == costs.size() - 1);  // before anything is known
  const Simulation frequent{.power = 2.5}, rare{.power = 0.2};
  for (int i = 0; i < 1'000; ++i) frequent.round(learnt, learnt.best(), random);
  CHECK(learnt.best() <= 1);
  CHECK(learnt.coverage(1) > 0.95);
  for (int i = 0; i < 1'000; ++i) rare.round(learnt, learnt.best(), random);
  CHECK(learnt.best() >= 3);
  CHECK(learnt.coverage(1) < 0.3);
  for (int i = 0; i < 1'000; ++i) frequent.round(learnt, learnt.best(), random);
  CHECK(learnt.best() <= 1);
}

TEST_CASE("CoverageEstimate under masks of few tokens treats all sizes alike") {
  CoverageEstimate learnt(costs_of(1.0));
  for (int i = 0; i < 100; ++i) {
    learnt.count_token(CoverageEstimate::never, 10);
    learnt.count_level(1, true);
    learnt.count_round(0, 1, 1.0);
  }
  for (std::size_t size = 0; size < learnt.costs().size(); ++size) {
    CHECK(learnt.coverage(size) == 1);
  }
  CHECK(learnt.best() == learnt.costs().size() - 1);  // all are as good
}

TEST_CASE("HeadCosts interpolates between sizes and refuses invalid costs") {
  const HeadCosts costs({{100, 1.0}, {300, 2.0}});
  CHECK(costs.seconds(0) == 0);
  CHECK(costs.seconds(50) == 0.5);
  CHECK(costs.seconds(100) == 1);
  CHECK(costs.seconds(200) == 1.5);
  CHECK(costs.seconds(1000) == 2);
  CHECK_THROWS_AS(HeadCosts({}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{0, 1.0}}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{2, 1.0}, {2, 2.0}}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{2, 0.0}}), td::Error);
  CHECK_THROWS_AS(HeadCosts({{2, std::numeric_limits<double>::infinity()}}), td::Error);

  const td::LlamaModel model = td::test::random_llama(3);
  std::mt19937 random{4};
  const td::FrequencyRankedHead head{
      model.lm_head(), td::test::random_ranks(model.vocabulary_size(), random).first(60)};
  const HeadCosts measured = HeadCosts::measure(head, 4, 8);
  REQUIRE(measured.size() == 3);  // 15, 30, 60
  CHECK(measured.rows(0) == 15);
  CHECK(measured.rows(2) == 60);
  CHECK(measured.seconds(60) > 0);
}

TEST_CASE("CoverageEstimate counts the rows that a request adds") {
  constexpr std::size_t never = CoverageEstimate::never;
  CoverageEstimate learnt{HeadCosts({{10, 1.0}, {20, 2.0}})};
  const std::vector<std::size_t> added{5, 3};
  CHECK_FALSE(learnt.has(0, never, 12));
  CHECK(learnt.has(0, never, 12, added));  // a head of 15 rows multiplies all 12
  CHECK_FALSE(learnt.has(0, never, 15, added));
  learnt.count_token(never, 12, added);
  CHECK(learnt.coverage(0) == 1);
}
