#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tooldecode/execute/speculation_gate.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

// The distribution that turns follow; times are spread evenly around their means.
struct Distribution {
  double acceptance = 0.5;
  TurnTimes times{};
  double spread = 0;
};

Seconds spread(Seconds mean, double width, std::mt19937& random) {
  return mean * (1 + std::uniform_real_distribution<double>(-width, width)(random));
}

// What some turns took with the gate's decisions, and what they would have taken with fixed ones.
struct Taken {
  Seconds gated{}, never{}, always{};
};

// A turn under the distribution; whether the gate speculated on it.
bool play(SpeculationGate& gate, const Distribution& distribution, std::mt19937& random,
          Taken* taken = nullptr) {
  const Seconds generation  = spread(distribution.times.generation, distribution.spread, random);
  const Seconds speculation = spread(distribution.times.speculation, distribution.spread, random);
  const Seconds tool        = spread(distribution.times.tool, distribution.spread, random);
  const bool right          = std::bernoulli_distribution(distribution.acceptance)(random);
  const bool speculated     = gate.expects_gain("t");
  if (speculated) {
    gate.observe("t", {.predicted_right = right,
                       .generation      = generation,
                       .speculation     = speculation,
                       .tool            = tool,
                       .overhead        = distribution.times.overhead});
  } else {
    gate.observe("t", {.generation = generation, .tool = tool});
  }
  if (taken != nullptr) {
    const Seconds without = generation + tool;
    const Seconds with =
        (right ? std::max(generation, speculation + tool) : without) + distribution.times.overhead;
    taken->never += without, taken->always += with;
    taken->gated += speculated ? with : without;
  }
  return speculated;
}

// How many of some turns are speculated on.
std::size_t count(SpeculationGate& gate, const Distribution& distribution, std::size_t turns,
                  std::mt19937& random) {
  std::size_t result = 0;
  for (std::size_t i = 0; i < turns; ++i) result += play(gate, distribution, random);
  return result;
}

// G = T = 1, g = 0.25: a right prediction saves 0.75.
Distribution distribution_of(double acceptance, double overhead) {
  return {acceptance, {Seconds(1), Seconds(0.25), Seconds(1), Seconds(overhead)}, 0.2};
}

}  // namespace

TEST_CASE("SpeculationGate decides correctly on both sides of the break-even after 48 turns") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    INFO("seed " << seed);
    SpeculationGate gate, closed;
    count(gate, distribution_of(0.8, 0.2), 48, random);    // break-even at 0.27
    count(closed, distribution_of(0.1, 0.3), 48, random);  // at 0.4
    CHECK(gate.estimate("t")->gain.count() > 0);
    CHECK(closed.estimate("t")->gain.count() < 0);
    CHECK(count(gate, distribution_of(0.8, 0.2), 100, random) >= 98);
    CHECK(count(closed, distribution_of(0.1, 0.3), 100, random) <= 10);
  }
}

TEST_CASE("SpeculationGate::estimate approaches the distribution of the turns") {
  std::mt19937 random(3);
  SpeculationGate gate{{.half_life = 1000}};
  CHECK_FALSE(gate.estimate("t").has_value());
  const Distribution distribution = distribution_of(0.7, 0.1);
  count(gate, distribution, 3000, random);
  const auto known = *gate.estimate("t");
  CHECK(known.acceptance == Approx(0.7).margin(0.04));
  CHECK(known.times.generation.count() == Approx(1).epsilon(0.02));
  CHECK(known.times.speculation.count() == Approx(0.25).epsilon(0.02));
  CHECK(known.times.tool.count() == Approx(1).epsilon(0.02));
  CHECK(known.times.overhead.count() == Approx(0.1));
  CHECK(known.gain.count() == Approx(time_saved(known.times, known.acceptance).count()));
}

TEST_CASE("SpeculationGate::estimate weighs observations by the half-life") {
  SpeculationGate gate{{.half_life = 2}};
  gate.observe("t", {.predicted_right = true, .tool = Seconds(1)});
  for (int i = 0; i < 2; ++i) gate.observe("t", {.predicted_right = false, .tool = Seconds(4)});
  // Weights 1/2, 1/sqrt(2), 1.
  const double recent = std::sqrt(0.5) + 1, all = recent + 0.5;
  const auto known = *gate.estimate("t");
  CHECK(known.times.tool.count() == Approx((0.5 + 4 * recent) / all));
  CHECK(known.evidence == Approx(all));
  CHECK(known.acceptance == Approx((0.5 + 0.5) / (all + 1)));
  CHECK_FALSE(known.has_times);
}

TEST_CASE("SpeculationGate learns the speculation's time from right predictions only") {
  SpeculationGate gate;
  const Observation right{.predicted_right = true,
                          .generation      = Seconds(1),
                          .speculation     = Seconds(0.25),
                          .tool            = Seconds(1)};
  Observation wrong     = right;
  wrong.predicted_right = false, wrong.speculation = Seconds(1);
  gate.observe("t", wrong);
  CHECK_FALSE(gate.estimate("t")->has_times);
  gate.observe("t", right);
  gate.observe("t", wrong);
  CHECK(gate.estimate("t")->has_times);
  CHECK(gate.estimate("t")->times.speculation.count() == Approx(0.25));
}

TEST_CASE(
    "SpeculationGate speculates until it has seen enough, at most as often as `trials` says") {
  SpeculationGate gate{{.trials = 5, .explore_every = 100}};
  std::size_t granted = 0;
  for (int i = 0; i < 50; ++i) granted += gate.expects_gain("silent");  // nothing is observed
  CHECK(granted == 5);
  std::mt19937 random(4);
  CHECK(count(gate, distribution_of(0, 0.1), 50, random) == 5);  // break-even at 0.13
}

TEST_CASE("SpeculationGate closes after one look where even a right prediction saves nothing") {
  for (const Distribution& distribution :
       {Distribution{1, {Seconds(1), Seconds(2), Seconds(1)}},                     // g > G
        Distribution{1, {Seconds(1), Seconds(0.1), Seconds(0)}},                   // T = 0
        Distribution{1, {Seconds(1), Seconds(0.5), Seconds(1), Seconds(0.6)}}}) {  // c
    SpeculationGate gate{{.explore_every = 1000}};
    std::mt19937 random(5);
    CHECK(count(gate, distribution, 200, random) <= 2);
  }
}

TEST_CASE("SpeculationGate explores again after refusals, more rarely where that costs more") {
  const auto gap = [](double overhead) {
    SpeculationGate gate{{.trials = 4, .explore_every = 10, .exploration_loss = 0.005}};
    std::mt19937 random(6);
    const Distribution distribution{0, {Seconds(1), Seconds(0.25), Seconds(1), Seconds(overhead)}};
    count(gate, distribution, 100, random);
    std::size_t refusals = 0;
    while (!play(gate, distribution, random)) {}
    while (!play(gate, distribution, random)) ++refusals;
    return refusals;
  };
  CHECK(gap(0.05) == 10);
  CHECK(gap(2) == 200);  // 2 s of 200 turns of 2 s each: 0.5 %
}

TEST_CASE("SpeculationGate follows a tool whose distribution changes") {
  std::size_t slowest_close = 0, slowest_open = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    INFO("seed " << seed);
    SpeculationGate gate;
    // Turns until ten decisions in a row are as they should be.
    const auto turns_until = [&](const Distribution& distribution, bool open) {
      std::size_t turns = 0;
      for (std::size_t run = 0; run < 10 && turns < 1000; ++turns) {
        run = play(gate, distribution, random) == open ? run + 1 : 0;
      }
      return turns;
    };
    count(gate, distribution_of(0.9, 0.2), 200, random);
    slowest_close = std::max(slowest_close, turns_until(distribution_of(0.05, 0.2), false));
    count(gate, distribution_of(0.05, 0.2), 200, random);
    slowest_open = std::max(slowest_open, turns_until(distribution_of(0.9, 0.2), true));
    CHECK(count(gate, distribution_of(0.9, 0.2), 100, random) >= 98);
  }
  CAPTURE(slowest_close, slowest_open);
  CHECK(slowest_close <= 60);
  CHECK(slowest_open <= 100);
}

TEST_CASE("SpeculationGate follows a tool that becomes fast, or slow again") {
  std::mt19937 random(8);
  Distribution distribution = distribution_of(0.8, 0.1);
  SpeculationGate gate;
  CHECK(count(gate, distribution, 100, random) >= 95);
  distribution.times.tool = Seconds(0.02);
  count(gate, distribution, 100, random);
  CHECK(count(gate, distribution, 100, random) <= 8);
  distribution.times.tool = Seconds(1);
  count(gate, distribution, 32, random);
  CHECK(count(gate, distribution, 100, random) >= 95);
}

TEST_CASE("SpeculationGate counts the saved readmission for results in time only") {
  Observation seen{.predicted_right = true,
                   .generation      = Seconds(1),
                   .speculation     = Seconds(0.25),
                   .tool            = Seconds(0),
                   .overhead        = Seconds(0.1),
                   .readmission     = Seconds(0.5)};
  SpeculationGate gate, late;
  for (int i = 0; i < 20; ++i) gate.observe("t", seen);
  const double acceptance = gate.estimate("t")->acceptance;
  CHECK(gate.estimate("t")->gain.count() == Approx(acceptance * 0.5 - 0.1));
  seen.tool = Seconds(3);
  for (int i = 0; i < 20; ++i) late.observe("t", seen);
  CHECK(late.estimate("t")->gain.count() == Approx(acceptance * 0.75 - 0.1));
}

TEST_CASE("SpeculationGate judges each tool separately") {
  std::mt19937 random(9);
  SpeculationGate gate;
  for (int i = 0; i < 40; ++i) {
    const bool slow = gate.expects_gain("slow"), fast = gate.expects_gain("fast");
    Observation seen{.generation = Seconds(1), .tool = Seconds(1)};
    if (slow) seen.predicted_right = true, seen.speculation = Seconds(0.2);
    gate.observe("slow", seen);
    seen = {.generation = Seconds(1), .tool = Seconds(0)};
    if (fast) seen.predicted_right = true, seen.speculation = Seconds(0.2);
    gate.observe("fast", seen);
  }
  CHECK(gate.expects_gain("slow"));
  CHECK_FALSE(gate.expects_gain("fast"));
}

TEST_CASE("SpeculationGate loses under 1 % against never and under 2 % against the better choice") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const Distribution distribution{
        draw(0, 1),
        {Seconds(draw(0.2, 2)), Seconds(draw(0, 1)), Seconds(draw(0, 3)),
         Seconds(draw(0, 1) < 0.3 ? 0 : draw(0, 0.5))},
        0.1};
    constexpr std::size_t turns = 1000;
    SpeculationGate gate;
    Taken taken;
    for (std::size_t i = 0; i < turns; ++i) play(gate, distribution, random, &taken);
    const double regret = taken.gated / std::min(taken.never, taken.always) - 1;
    const double loss   = taken.gated / taken.never - 1;
    INFO("seed " << seed << ": acceptance " << distribution.acceptance << ", G "
                 << distribution.times.generation.count() << ", g "
                 << distribution.times.speculation.count() << ", T "
                 << distribution.times.tool.count() << ", c " << distribution.times.overhead.count()
                 << ", regret " << regret << ", loss " << loss);
    CHECK(regret < 0.02);
    CHECK(loss < 0.01);
  }
}

TEST_CASE("SpeculationGate counts correctly from several threads") {
  SpeculationGate gate{{.trials = 16, .explore_every = 1'000'000}};
  std::vector<std::size_t> granted(4);
  std::vector<std::thread> threads;
  for (std::size_t& mine : granted) {
    threads.emplace_back([&gate, &mine] {
      for (int i = 0; i < 500; ++i) {
        mine += gate.expects_gain("t");
        static_cast<void>(gate.estimate("t"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(granted[0] + granted[1] + granted[2] + granted[3] == 16);
  threads.clear();
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&gate, t] {
      for (int i = 0; i < 500; ++i) {
        gate.observe("t" + std::to_string(i % 3),
                     {.predicted_right = t % 2 == 0, .tool = Seconds(2)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const char* tool : {"t0", "t1", "t2"}) {
    const auto known = gate.estimate(tool);
    REQUIRE(known.has_value());
    CHECK(known->times.tool.count() == Approx(2));
    CHECK(known->evidence == Approx(1 / (1 - std::exp2(-1.0 / 16))));  // the sum of all weights
  }
}

TEST_CASE("SpeculationGate refuses invalid options and observations") {
  const auto code = [](auto&& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.code();
    }
    return Errc::malformed_json;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const GateOptions& bad :
       {GateOptions{.half_life = 0}, GateOptions{.half_life = nan}, GateOptions{.half_life = -1},
        GateOptions{.explore_every = 0}, GateOptions{.exploration_loss = 0},
        GateOptions{.exploration_loss = 2}, GateOptions{.overhead = Seconds(-1)},
        GateOptions{.overhead = Seconds(nan)}}) {
    CHECK(code([&] { SpeculationGate gate{bad}; }) == Errc::invalid_option);
  }
  CHECK_THROWS_WITH(SpeculationGate({.half_life = -1}),
                    "half_life -1: must be above 0, and finite");
  CHECK_THROWS_WITH(SpeculationGate({.explore_every = 0}), "explore_every 0: must be 1 or more");
  CHECK_THROWS_WITH(SpeculationGate({.exploration_loss = 2}),
                    "exploration_loss 2: must be above 0 and at most 1");
  SpeculationGate gate;
  for (const Observation& bad :
       {Observation{.generation = Seconds(-1)}, Observation{.speculation = Seconds(nan)},
        Observation{.tool = Seconds(std::numeric_limits<double>::infinity())},
        Observation{.overhead = Seconds(-0.1)}, Observation{.readmission = Seconds(nan)}}) {
    CHECK(code([&] { gate.observe("t", bad); }) == Errc::invalid_option);
  }
  CHECK_FALSE(gate.estimate("t").has_value());
}
