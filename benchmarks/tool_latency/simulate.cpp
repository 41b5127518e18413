// The sweep as a simulation: tables, and whether the claims hold.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "commands.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "speedup_map.hpp"
#include "sweep.hpp"

namespace tool_latency {

namespace {

void print_latencies(Sweep& sweep) {
  std::vector<std::string> names{"tool latency, s"};
  for (const std::size_t agents : all_agents) {
    for (const char* policy : {"client", "engine"}) {
      names.push_back(agents_of(agents) + ", " + policy);
    }
  }
  print_head(
      "Time saved against no speculation, one speculator that is right 80 % of the time, "
      "prefix cache on, no gate",
      names);
  for (const double tool : latencies()) {
    std::vector<std::string> cells{fixed(tool, 2)};
    for (const std::size_t agents : all_agents) {
      for (const Policy policy : {Policy::client, Policy::engine}) {
        cells.push_back(percent(sweep.at(agents, tool, {.policy = policy}).saved));
      }
    }
    print_row(cells);
  }
}

void print_details(Sweep& sweep) {
  print_head(
      "Throughput, hits and waste at a tool latency of 1 s, 80 % acceptance, one speculator "
      "and five",
      {"agents", "speculators", "policy", "tokens/s", "time saved", "hit rate",
       "answered in the batch", "wasted calls per turn"});
  for (const std::size_t agents : all_agents) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}}) {
      for (const Policy policy : {Policy::none, Policy::client, Policy::engine}) {
        if (policy == Policy::none && count > 1) continue;
        const Point& point = sweep.at(agents, 1, {.policy = policy, .speculators = count});
        const Outcome& o   = point.outcome;
        print_row({std::to_string(agents), policy == Policy::none ? "" : std::to_string(count),
                   std::string(name(policy)), fixed(o.throughput(), 0), percent(point.saved),
                   percent(o.hit_rate()), percent(share(o.resident, o.turns)),
                   fixed(share(o.wasted(), o.turns), 2)});
      }
    }
  }
}

void print_speculators(Sweep& sweep) {
  for (const std::size_t agents : {std::size_t{1}, std::size_t{32}}) {
    std::vector<std::string> names{"acceptance of each", "policy"};
    for (std::size_t count = 1; count <= max_speculators; ++count) {
      names.push_back(std::to_string(count));
    }
    print_head("Time saved by the number of speculators, " + agents_of(agents) +
                   ", tool latency 1 s, no gate",
               names);
    for (const double quality : qualities) {
      for (const Policy policy : {Policy::client, Policy::engine}) {
        std::vector<std::string> cells{percent(quality), std::string(name(policy))};
        for (std::size_t count = 1; count <= max_speculators; ++count) {
          cells.push_back(percent(
              sweep.at(agents, 1, {.policy = policy, .speculators = count, .acceptance = quality})
                  .saved));
        }
        print_row(cells);
      }
    }
  }
}

void print_prefix_cache(Sweep& sweep) {
  print_head(
      "Engine-side against client-side, 8 agents, 80 % acceptance: time saved against no "
      "speculation with the same prefix cache",
      {"tool latency, s", "client, prefix cache", "engine, prefix cache", "client, no prefix cache",
       "engine, no prefix cache"});
  for (const double tool : latencies()) {
    std::vector<std::string> cells{fixed(tool, 2)};
    for (const bool is_refilled : {false, true}) {
      for (const Policy policy : {Policy::client, Policy::engine}) {
        cells.push_back(percent(sweep.at(8, tool, {.policy = policy}, is_refilled).saved));
      }
    }
    print_row(cells);
  }
}

void print_costs(Sweep& sweep) {
  const Prices prices;
  print_head("What client-side speculators cost and save, one agent, tool latency " +
                 fixed(cost_tool, 0) + " s, 80 % acceptance of each; a token of theirs costs " +
                 percent(prices.speculator) + " of the main model's",
             {"speculators", "added cost", "hit rate", "time saved"});
  for (const std::size_t count : paper_speculators) {
    const Point& point = sweep.at(1, cost_tool, {.policy = Policy::client, .speculators = count});
    print_row({std::to_string(count),
               percent(static_cast<double>(count) * prices.of_proposal(sweep.base().workload)),
               percent(point.outcome.hit_rate()), percent(point.saved)});
  }
}

void print_map() {
  const SpeedupMap map;
  print_head(
      "The map of Equation 2 (computed): speedups by tool time; shares of the map with g > 0",
      {"T / G", "greatest", "at least 1.2", "at least 1.5"});
  for (std::size_t tool = 0; tool < SpeedupMap::tools.size(); ++tool) {
    print_row({fixed(SpeedupMap::tools[tool], 2), fixed(map.greatest(tool), 2),
               percent(map.share_above(tool, 1.2)), percent(map.share_above(tool, 1.5))});
  }
}

std::string describe(const Point& point) {
  const Speculation& s = point.setup.speculation;
  return percent(point.saved) + " (" + std::string(name(s.policy)) + ", " +
         agents_of(point.setup.workload.agents) + ", tool " + fixed(point.setup.workload.tool, 2) +
         " s, " + std::to_string(s.speculators) + " speculators, acceptance " +
         fixed(s.acceptance, 2) + ")";
}

// Simulated times against the performance model, under its assumptions: one agent, constant times,
// and predictions that do not run on the engine.
double worst_deviation(const Setup& base) {
  double worst = 0;
  for (const double tool : latencies()) {
    for (const double quality : qualities) {
      for (const Policy policy : {Policy::none, Policy::client, Policy::engine}) {
        Setup setup                   = base;
        setup.engine.step_per_draft   = 0;
        setup.workload.agents         = 1;
        setup.workload.spread         = 0;
        setup.workload.tool_deviation = 0;
        setup.workload.sessions       = 400;
        setup.workload.tool           = tool;
        setup.speculation.policy      = policy;
        setup.speculation.acceptance  = quality;
        worst                         = std::max(
            worst, std::abs(tool_latency::simulate(setup).seconds / expected_seconds(setup) - 1));
      }
    }
  }
  return worst;
}

void check_operating_point(Sweep& sweep, Claims& claims) {
  const double generation = generation_of(sweep);
  double min              = 1;
  std::string found;
  for (const std::size_t agents : all_agents) {
    const Point& point = sweep.at(agents, generation, {.policy = Policy::client});
    min                = std::min(min, point.saved);
    found += (found.empty() ? "" : ", ") + percent(point.saved) + " with " + agents_of(agents);
  }
  claims.check(
      "client-side saves at least 21 % at acceptance 0.8, T = G = " + fixed(generation, 2) +
          " s, g = " + fixed(sweep.base().speculation.prediction, 2) + " s",
      min >= 0.21, found);
}

// A result is in time if g + T <= G.
void check_engine_gain(Sweep& sweep, Claims& claims) {
  const double generation = generation_of(sweep);
  double min = 1, greatest = -1;
  std::string later;
  for (const double tool : latencies()) {
    if (tool >= generation) continue;
    for (const std::size_t agents : all_agents) {
      const double gain = sweep.at(agents, tool, {.policy = Policy::engine}).saved -
                          sweep.at(agents, tool, {.policy = Policy::client}).saved;
      if (sweep.base().speculation.prediction + tool <= generation) {
        min = std::min(min, gain), greatest = std::max(greatest, gain);
      } else {
        later += (later.empty() ? "" : ", ") + fixed(100 * gain, 1) + " at " + fixed(tool, 2) +
                 " s with " + agents_of(agents);
      }
    }
  }
  claims.check(
      "engine-side saves at least 3 points more than client-side for tools that end within the "
      "reasoning, g + T <= G",
      min >= 0.03 && min <= greatest,
      min > greatest ? "there is no such tool"
                     : fixed(100 * min, 1) + " to " + fixed(100 * greatest, 1) + " points");
  std::cout << "       where T < G < g + T, in points: " << later << '\n';
}

void check_gate(Sweep& sweep, Claims& claims) {
  double min_open = 1, least_gated = 1, max_lost = 0;
  std::string open, gated, lost;
  std::size_t count = 0;
  for (const std::size_t agents : all_agents) {
    for (const double tool : latencies()) {
      for (const double quality : qualities) {
        for (std::size_t speculators = 1; speculators <= max_speculators; ++speculators) {
          for (const Policy policy : {Policy::client, Policy::engine}) {
            Speculation speculation{policy, speculators, quality};
            const Point& without  = sweep.at(agents, tool, speculation);
            speculation.is_gated  = true;
            const Point& with     = sweep.at(agents, tool, speculation);
            const double foregone = std::max(0.0, without.saved) - with.saved;
            if (without.saved < min_open) min_open = without.saved, open = describe(without);
            if (with.saved < least_gated) least_gated = with.saved, gated = describe(with);
            if (foregone > max_lost) {
              max_lost = foregone;
              lost     = fixed(100 * foregone, 1) + " points at " + describe(with);
            }
            ++count;
          }
        }
      }
    }
  }
  claims.check("with the gate no point of " + std::to_string(count) +
                   " is slower than no speculation by more than 1 %",
               least_gated >= -0.01, "the worst saves " + gated + "; without the gate " + open);
  std::cout << "       what the gate gives away against the better of always and never, at most: "
            << lost << '\n';
}

}  // namespace

int simulate(const SimulateOptions& options) {
  Sweep sweep(options.setup);
  std::cout << "A turn decodes for " << fixed(generation_of(sweep), 2)
            << " s on a lone agent's engine; a predicted call is there after "
            << fixed(options.setup.speculation.prediction, 2)
            << " s. The agents, the range of latencies and the numbers of speculators are the "
               "paper's; all other parameters are chosen (--help, or the JSON).\n";
  print_latencies(sweep);
  print_details(sweep);
  print_speculators(sweep);
  print_prefix_cache(sweep);
  print_costs(sweep);
  print_map();
  std::cout << '\n';
  Claims claims;
  check_operating_point(sweep, claims);
  check_engine_gain(sweep, claims);
  check_gate(sweep, claims);
  const double deviation = worst_deviation(options.setup);
  claims.check("the simulation is within 1 % of the performance model where its assumptions hold",
               deviation <= 0.01, "at most " + fixed(100 * deviation, 2) + " % off");
  if (!options.out.empty()) write_json(options.out, sweep, claims.report());
  if (!options.plots.empty()) write_plots(options.plots, sweep);
  return claims.all_hold() ? 0 : 1;
}

}  // namespace tool_latency
