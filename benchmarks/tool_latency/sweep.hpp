/// \file
/// The points of the sweep, run on demand.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "simulation.hpp"

namespace tool_latency {

/// The paper's sweep: agents, two regimes of latencies, 1 to 9 speculators, three qualities.
inline constexpr std::array<std::size_t, 3> all_agents{1, 8, 32};
inline constexpr std::array<double, 3> qualities{0.5, 0.65, 0.8};
inline constexpr std::size_t max_speculators = 9;
inline constexpr std::array<std::size_t, 5> paper_speculators{1, 3, 5, 7, 9};
/// The latencies, in seconds, at which hit rates and costs are reported; the first is that of
/// Figure 5.
inline constexpr double hits_tool = 1.5, cost_tool = 1;
inline constexpr double best_quality = 0.8;

inline std::vector<double> latencies() {
  std::vector<double> result;
  for (int hundredths = 0; hundredths <= 300; hundredths += hundredths < 50 ? 5 : 25) {
    if (hundredths != 5) result.push_back(hundredths / 100.0);
  }
  return result;
}

/// The cost of one proposal, as a share of the cost of the main model's turn. It reads the same
/// context and writes `draft_tokens` tokens at the speculator's price.
struct Prices {
  double speculator   = 0.04;  ///< price of a speculator's token; the main model's is 1
  double written      = 8;     ///< price of a written token; that of a read one is 1
  double draft_tokens = 64;    ///< written per proposal

  [[nodiscard]] double of_proposal(const Workload& work) const {
    const double turn_tokens = work.reasoning_tokens + work.call_tokens;
    const double context     = work.prompt_tokens + (turn_tokens + work.result_tokens) *
                                                    static_cast<double>(work.turns - 1) / 2;
    return speculator * (context + written * draft_tokens) / (context + written * turn_tokens);
  }
};

/// One point and its baseline: the same work without speculation.
struct Point {
  Setup setup;
  Outcome outcome;
  double saved = 0;
};

/// Runs each point on first use and keeps its result.
class Sweep {
 public:
  explicit Sweep(Setup base) : base_(std::move(base)) {}

  /// \param is_refilled  no prefix cache: a sequence that returns is prefilled entirely
  const Point& at(std::size_t agents, double tool, Speculation speculation,
                  bool is_refilled = false) {
    if (speculation.policy == Policy::none) speculation = {};
    speculation.prediction = base_.speculation.prediction;
    Setup setup            = base_;
    setup.workload.agents  = agents;
    setup.workload.tool    = tool;
    setup.speculation      = speculation;
    if (is_refilled) setup.engine.cached_share = 0;
    const Key key{agents,
                  tool,
                  speculation.policy,
                  speculation.speculators,
                  speculation.acceptance,
                  speculation.is_gated,
                  is_refilled};
    if (const auto found = points_.find(key); found != points_.end()) return found->second;
    Point point{setup, mean_of(setup), 0};
    if (speculation.policy != Policy::none) {
      point.saved = 1 - point.outcome.seconds / at(agents, tool, {}, is_refilled).outcome.seconds;
    }
    return points_.emplace(key, std::move(point)).first->second;
  }

  [[nodiscard]] const Setup& base() const { return base_; }

 private:
  using Key = std::tuple<std::size_t, double, Policy, std::size_t, double, bool, bool>;

  // Over enough runs that all points have equally many turns; counts are summed.
  static Outcome mean_of(Setup setup) {
    const std::size_t runs = std::max<std::size_t>(1, all_agents.back() / setup.workload.agents);
    Outcome sum;
    for (std::size_t i = 0; i < runs; ++i, ++setup.seed) {
      const Outcome run = tool_latency::simulate(setup);
      sum.seconds += run.seconds / static_cast<double>(runs);
      sum.makespan += run.makespan, sum.tokens += run.tokens;
      sum.turns += run.turns, sum.speculated += run.speculated, sum.started += run.started;
      sum.hits += run.hits, sum.resident += run.resident;
    }
    return sum;
  }

  Setup base_;
  std::map<Key, Point> points_;
};

/// G: the time that a lone agent takes to decode a turn.
inline double generation_of(const Sweep& sweep) {
  return model_times(sweep.base()).turn.generation.count();
}

}  // namespace tool_latency
