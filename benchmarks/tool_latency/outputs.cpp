// Writes the numbers as JSON and the charts as SVG.
#include "outputs.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report.hpp"
#include "speedup_map.hpp"
#include <program/plot.hpp>

namespace tool_latency {

namespace {

using Json = tooldecode::JsonValue;

constexpr std::array columns{
    "agents",   "tool_latency_s", "policy",          "speculators",     "acceptance",
    "gate",     "prefix_cache",   "time_saved",      "tokens_per_s",    "seconds_per_turn",
    "hit_rate", "resident_share", "wasted_per_turn", "speculated_share"};

void add_row(std::vector<std::string>& rows, const Point& point) {
  const Setup& s   = point.setup;
  const Outcome& o = point.outcome;
  rows.push_back(
      Json{s.workload.agents, s.workload.tool, name(s.speculation.policy),
           s.speculation.speculators, s.speculation.acceptance, s.speculation.is_gated,
           s.engine.cached_share > 0, rounded(point.saved), std::round(o.throughput() * 10) / 10,
           rounded(o.seconds / static_cast<double>(s.workload.turns * s.workload.sessions)),
           rounded(o.hit_rate()), rounded(share(o.resident, o.turns)),
           rounded(share(o.wasted(), o.turns)), rounded(share(o.speculated, o.turns))}
          .text());
}

// All latencies for one speculator, and all numbers of speculators at 1 s.
std::vector<std::string> rows_of(Sweep& sweep) {
  std::vector<std::string> rows;
  for (const std::size_t agents : all_agents) {
    for (const double tool : latencies()) {
      for (const bool is_refilled : {false, true}) {
        add_row(rows, sweep.at(agents, tool, {}, is_refilled));
        for (const Policy policy : {Policy::client, Policy::engine}) {
          add_row(rows, sweep.at(agents, tool, {.policy = policy}, is_refilled));
        }
      }
      for (const Policy policy : {Policy::client, Policy::engine}) {
        add_row(rows, sweep.at(agents, tool, {.policy = policy, .is_gated = true}));
      }
      for (const double quality : qualities) {
        if (quality == best_quality || tool == 1) continue;  // written above and below
        add_row(rows, sweep.at(agents, tool, {.policy = Policy::client, .acceptance = quality}));
      }
    }
    for (const double quality : qualities) {
      for (const std::size_t count : paper_speculators) {
        if (count == 1) continue;  // written above
        add_row(rows,
                sweep.at(agents, hits_tool,
                         {.policy = Policy::client, .speculators = count, .acceptance = quality}));
      }
    }
    for (const double quality : qualities) {
      for (std::size_t count = 1; count <= max_speculators; ++count) {
        if (count == 1 && quality == best_quality) continue;  // among those written above
        for (const Policy policy : {Policy::client, Policy::engine}) {
          for (const bool is_gated : {false, true}) {
            add_row(rows, sweep.at(agents, 1,
                                   {.policy      = policy,
                                    .speculators = count,
                                    .acceptance  = quality,
                                    .is_gated    = is_gated}));
          }
        }
      }
    }
  }
  return rows;
}

// Cost and savings of speculators, as shares of turns without them.
Json cost_row(Sweep& sweep, const Prices& prices, std::size_t count) {
  const Point& point = sweep.at(1, cost_tool, {.policy = Policy::client, .speculators = count});
  const double cost  = static_cast<double>(count) * prices.of_proposal(sweep.base().workload);
  // Equal proposals run once; all others, and wrong ones, are wasted.
  const double right = share(point.outcome.hits, point.outcome.turns);
  return {{"speculators", count},
          {"added_cost", rounded(cost)},
          {"wasted_cost", rounded(cost * (1 - right / static_cast<double>(count)))},
          {"time_saved", rounded(point.saved)},
          {"hit_rate", rounded(point.outcome.hit_rate())}};
}

Json parameters_of(const Setup& setup) {
  const Engine& e   = setup.engine;
  const Workload& w = setup.workload;
  return {
      {"paper",
       {{"agents", all_agents}, {"tool_latency_s", {0, 3}}, {"speculators", {1, max_speculators}}}},
      {"generation_s", rounded(model_times(setup).turn.generation.count())},
      {"chosen",
       {{"acceptance_of_each_speculator", qualities},
        {"step_s", e.step},
        {"step_per_sequence_s", e.step_per_sequence},
        {"step_per_draft_s", e.step_per_draft},
        {"prefill_tokens_per_s", e.prefill_rate},
        {"prefill_chunk_tokens", e.chunk_tokens},
        {"round_trip_s", e.round_trip},
        {"eviction_s", e.eviction},
        {"prefix_cache_share", {1, 0}},
        {"prompt_tokens", w.prompt_tokens},
        {"reasoning_tokens", w.reasoning_tokens},
        {"call_tokens", w.call_tokens},
        {"result_tokens", w.result_tokens},
        {"spread", w.spread},
        {"tool_deviation", w.tool_deviation},
        {"prediction_s", setup.speculation.prediction},
        {"turns_of_a_session", w.turns},
        {"sessions_of_an_agent", w.sessions},
        {"seed", setup.seed}}}};
}

void write_plot(const std::string& directory, std::string_view file, const program::Plot& plot) {
  open_file(std::filesystem::path(directory) / file) << program::draw_svg(plot);
}

// A series of time saved in per cent, or of another number.
template <class X, class Y>
program::PlotSeries series_of(std::string name, const std::vector<X>& xs, Y y) {
  program::PlotSeries series{std::move(name)};
  for (const X& x : xs) {
    const double value = y(x);
    series.points.push_back({static_cast<double>(x), value, value, value});
  }
  return series;
}

}  // namespace

void write_json(const std::string& path, Sweep& sweep, const Json& claims) {
  const Prices prices;
  Json costs = Json::array();
  for (const std::size_t count : paper_speculators) costs.push_back(cost_row(sweep, prices, count));
  write_results(path, parameters_of(sweep.base()), claims, columns, rows_of(sweep),
                {{"cost",
                  {{"chosen",
                    {{"speculator_price", prices.speculator},
                     {"written_to_read", prices.written},
                     {"draft_tokens", prices.draft_tokens},
                     {"tool_latency_s", cost_tool},
                     {"acceptance_of_each_speculator", best_quality}}},
                   {"by_speculators", std::move(costs)}}},
                 {"speedup_map", SpeedupMap().to_json()}});
}

void write_plots(const std::string& directory, Sweep& sweep) {
  program::Plot saved{"Time saved by tool latency (client-side, acceptance 0.8)",
                      "tool latency, s",
                      "time saved, %",
                      {}};
  for (const std::size_t agents : all_agents) {
    saved.series.push_back(series_of(agents_of(agents), latencies(), [&](double tool) {
      return 100 * sweep.at(agents, tool, {.policy = Policy::client}).saved;
    }));
  }
  saved.series.push_back(series_of("1 agent, by the model", latencies(), [&](double tool) {
    Setup setup       = sweep.at(1, tool, {.policy = Policy::client}).setup;
    const double with = expected_seconds(setup);
    setup.speculation = {};
    return 100 * (1 - with / expected_seconds(setup));
  }));
  saved.series.back().is_curve = true;
  write_plot(directory, "tool_latency_saved.svg", saved);

  program::Plot throughput{"Throughput by agents (tool latency 0.5 s, acceptance 0.8)",
                           "agents",
                           "tokens per second",
                           {}};
  const std::vector<std::size_t> more_agents{1, 2, 4, 8, 16, 24, 32};
  for (const Policy policy : {Policy::none, Policy::client, Policy::engine}) {
    throughput.series.push_back(
        series_of(policy == Policy::none ? "no speculation" : std::string(name(policy)) + "-side",
                  more_agents, [&](std::size_t agents) {
                    return sweep.at(agents, 0.5, {.policy = policy}).outcome.throughput();
                  }));
  }
  write_plot(directory, "tool_latency_throughput.svg", throughput);

  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count <= max_speculators; ++count) counts.push_back(count);
  program::Plot speculators{"Time saved by speculators (client-side, tool latency 1 s)",
                            "speculators",
                            "time saved, %",
                            {}};
  for (const std::size_t agents : {std::size_t{1}, std::size_t{32}}) {
    for (const double quality : qualities) {
      speculators.series.push_back(
          series_of(agents_of(agents) + ", " + fixed(quality, 2), counts, [&](std::size_t count) {
            return 100 *
                   sweep
                       .at(agents, 1,
                           {.policy = Policy::client, .speculators = count, .acceptance = quality})
                       .saved;
          }));
    }
  }
  write_plot(directory, "tool_latency_speculators.svg", speculators);

  program::Plot sides{"Engine-side against client-side (8 agents, acceptance 0.8)",
                      "tool latency, s",
                      "time saved, %",
                      {}};
  for (const bool is_refilled : {false, true}) {
    for (const Policy policy : {Policy::client, Policy::engine}) {
      sides.series.push_back(
          series_of(std::string(name(policy)) + (is_refilled ? ", refill" : ", prefix cache"),
                    latencies(), [&](double tool) {
                      return 100 * sweep.at(8, tool, {.policy = policy}, is_refilled).saved;
                    }));
    }
  }
  write_plot(directory, "tool_latency_sides.svg", sides);

  program::Plot lone{"Engine-side against client-side, one agent (acceptance 0.8)",
                     "mean tool latency, s",
                     "time saved, %",
                     {}};
  for (const Policy policy : {Policy::client, Policy::engine}) {
    lone.series.push_back(
        series_of(std::string(name(policy)) + "-side", latencies(),
                  [&](double tool) { return 100 * sweep.at(1, tool, {.policy = policy}).saved; }));
  }
  write_plot(directory, "tool_latency_lone.svg", lone);

  program::Plot by_quality{
      "Time saved by mean tool latency (client-side, 8 agents, one speculator)",
      "mean tool latency, s",
      "time saved, %",
      {}};
  for (const double quality : qualities) {
    by_quality.series.push_back(
        series_of("acceptance " + fixed(quality, 2), latencies(), [&](double tool) {
          return 100 * sweep.at(8, tool, {.policy = Policy::client, .acceptance = quality}).saved;
        }));
  }
  write_plot(directory, "tool_latency_qualities.svg", by_quality);

  program::Plot hits{"Throughput gained by hit rate (client-side, 8 agents, tool latency 1.5 s)",
                     "turns whose call was predicted, %",
                     "throughput gained, %",
                     {}};
  const double without = sweep.at(8, hits_tool, {}).outcome.throughput();
  for (const double quality : qualities) {
    program::PlotSeries series{"acceptance " + fixed(quality, 2)};
    for (const std::size_t count : paper_speculators) {
      const Outcome& outcome =
          sweep
              .at(8, hits_tool,
                  {.policy = Policy::client, .speculators = count, .acceptance = quality})
              .outcome;
      const double gain = 100 * (outcome.throughput() / without - 1);
      series.points.push_back(
          {100 * outcome.hit_rate(), gain, gain, gain, std::to_string(count) + "x"});
    }
    hits.series.push_back(std::move(series));
  }
  write_plot(directory, "tool_latency_hits.svg", hits);

  program::Plot cost{"What speculators cost and save (client-side, one agent, acceptance 0.8)",
                     "added cost, % of the main model's",
                     "time saved, %",
                     {}};
  program::PlotSeries costs{"tool latency " + fixed(cost_tool, 0) + " s"};
  for (const std::size_t count : paper_speculators) {
    const Json row           = cost_row(sweep, Prices{}, count);
    const double saved_share = 100 * row["time_saved"].get<double>();
    costs.points.push_back({100 * row["added_cost"].get<double>(), saved_share, saved_share,
                            saved_share, std::to_string(count) + "x"});
  }
  cost.series.push_back(std::move(costs));
  write_plot(directory, "tool_latency_cost.svg", cost);

  open_file(std::filesystem::path(directory) / "tool_latency_map.svg") << SpeedupMap().to_svg();
}

}  // namespace tool_latency
