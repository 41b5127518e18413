#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/turn_times.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("time_saved is the mean over which speculators are right") {
  std::mt19937 random(513);
  const auto time = [&] { return static_cast<double>(random() % 9) / 4; };
  for (int trial = 0; trial < 300; ++trial) {
    const double g = time(), guess = time(), tool = time(), cost = time() / 8;
    const double acceptance = static_cast<double>(random() % 11) / 10;
    const std::size_t count = random() % 5;
    const TurnTimes times   = {Seconds(g), Seconds(guess), Seconds(tool), Seconds(cost)};
    double mean             = 0;
    const double plain      = g + tool;
    for (unsigned right = 0; right < 1U << count; ++right) {
      const auto hits = static_cast<double>(std::popcount(right));
      const double chance =
          std::pow(acceptance, hits) * std::pow(1 - acceptance, static_cast<double>(count) - hits);
      const double turn = right != 0 ? std::max(g, guess + tool) : plain;
      mean += chance * (plain - turn - static_cast<double>(count) * cost);
    }
    INFO("trial " << trial);
    CHECK(std::abs(time_saved(times, acceptance, count).count() - mean) < 1e-12);
  }
}

TEST_CASE("time_saved refuses a negative time, one that is not finite, and no probability") {
  const TurnTimes times{Seconds(2), Seconds(1), Seconds(1), Seconds(0)};
  CHECK(time_saved(times, 0.5).count() == 0.5);
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    TurnTimes bad = times;
    bad.tool      = Seconds(wrong);
    CHECK_THROWS_AS(time_saved(bad, 0.5), Error);
    CHECK_THROWS_AS(time_saved(times, wrong), Error);
  }
  CHECK_THROWS_AS(time_saved(times, 1.1), Error);
}
