// Agents with sleeping tools on a real server, at a tenth of the paper's scale.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/research/performance_model.hpp>
#include <tooldecode/text/value_reader.hpp>

#include "agent.hpp"
#include "commands.hpp"
#include "report.hpp"
#include "server_process.hpp"
#include <program/files.hpp>
#include <program/paths.hpp>
#include <program/plot.hpp>

namespace tool_latency {

namespace {

namespace td = tooldecode;

constexpr std::array tool_shares{0.0, 0.5, 1.0, 2.0};  // T in units of G
constexpr std::size_t some_agents = 4;
constexpr double gate_overhead    = 0.001;  // seconds, the gate's initial estimate

std::vector<Speculation> ways_of(std::size_t agents, double latency, double generation) {
  std::vector<Speculation> ways{
      {},
      {.policy = Policy::client},
      {.policy = Policy::client, .is_gated = true},
      {.policy = Policy::engine},
  };
  if (agents > 1) return ways;
  ways.push_back({.policy = Policy::client, .acceptance = 0.65});
  ways.push_back({.policy = Policy::client, .acceptance = 0.5});
  if (latency == generation) {
    ways.push_back({.policy = Policy::client, .speculators = 3, .acceptance = 0.5});
  }
  return ways;
}

// One way to speculate at one point: the turns of all agents.
struct Series {
  Speculation way;
  std::vector<RealTurn> turns;

  template <class Time>
  [[nodiscard]] double mean(Time time) const {
    double sum = 0;
    for (const RealTurn& turn : turns) sum += time(turn).count();
    return sum / static_cast<double>(turns.size());
  }
  [[nodiscard]] double seconds() const {
    return mean([](const RealTurn& turn) { return turn.total; });
  }
  [[nodiscard]] double generation() const {
    return mean([](const RealTurn& turn) { return turn.generation; });
  }
  [[nodiscard]] double rest() const {
    return mean([](const RealTurn& turn) { return turn.rest(); });
  }
  // g, over turns with a prediction.
  [[nodiscard]] double guess() const {
    double sum        = 0;
    std::size_t count = 0;
    for (const RealTurn& turn : turns) {
      if (turn.guess > Seconds::zero()) sum += turn.guess.count(), ++count;
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }
  // T, over turns whose call was not predicted.
  [[nodiscard]] double tool() const {
    double sum        = 0;
    std::size_t count = 0;
    for (const RealTurn& turn : turns) {
      if (!turn.is_hit()) sum += turn.tool.count(), ++count;
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }
  template <class Holds>
  [[nodiscard]] std::size_t count(Holds holds) const {
    return static_cast<std::size_t>(std::count_if(turns.begin(), turns.end(), holds));
  }
  [[nodiscard]] std::size_t hits() const {
    return count([](const RealTurn& turn) { return turn.is_hit(); });
  }
  [[nodiscard]] std::size_t speculated() const {
    return count([](const RealTurn& turn) { return turn.counts.started > 0; });
  }
  [[nodiscard]] std::size_t resident() const {
    return count([](const RealTurn& turn) { return turn.is_resident; });
  }
  [[nodiscard]] std::size_t wasted() const {
    std::size_t sum = 0;
    for (const RealTurn& turn : turns) sum += turn.counts.wasted;
    return sum;
  }
  [[nodiscard]] bool is_same() const {
    return count([](const RealTurn& turn) { return turn.is_same; }) == turns.size();
  }
};

struct Estimate {
  double value = 0, error = 0;  // error: the standard error
};

// A point of the sweep, and the model's expectation.
struct RealPoint {
  std::size_t agents = 1;
  double latency     = 0;
  std::vector<Series> series{};  // the first is without speculation

  [[nodiscard]] const Series& find(const Speculation& way) const {
    for (const Series& s : series) {
      if (s.way.policy == way.policy && s.way.speculators == way.speculators &&
          s.way.acceptance == way.acceptance && s.way.is_gated == way.is_gated) {
        return s;
      }
    }
    throw std::logic_error("no such series");
  }

  // Share of the time without speculation; compares turns of the same question.
  [[nodiscard]] Estimate saved(const Series& s) const {
    const auto n = static_cast<double>(s.turns.size());
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < s.turns.size(); ++i) {
      const double one = (series[0].turns[i].total - s.turns[i].total).count();
      sum += one, squares += one * one;
    }
    const double variance = n > 1 ? std::max(0.0, squares - sum * sum / n) / (n - 1) : 0;
    const double without  = series[0].seconds();
    return {sum / n / without, std::sqrt(variance / n) / without};
  }

  // The model's time of a turn. G, T and the second answer are measured without speculation; g and
  // the share of correct predictions are measured with it. The engine does more than hide the tool,
  // so it has its own G, second answer, and T of turns without a prediction.
  [[nodiscard]] double expected(const Series& s) const {
    const Series& from  = s.way.policy == Policy::engine ? s : series[0];
    const bool has_tool = from.hits() < from.turns.size();
    const td::TurnTimes times{Seconds(from.generation()), Seconds(s.guess()),
                              Seconds((has_tool ? from : series[0]).tool())};
    const Seconds turn = s.way.policy == Policy::none
                             ? time_without(1, times)
                             : time_with(1, times, share(s.hits(), s.turns.size()));
    return turn.count() + from.rest();
  }
  [[nodiscard]] double deviation(const Series& s) const { return s.seconds() / expected(s) - 1; }
};

std::string name_of(const Speculation& way) {
  if (way.policy == Policy::none) return "none";
  return std::string(name(way.policy)) + ", " + fixed(way.acceptance, 2) +
         (way.speculators > 1 ? ", " + std::to_string(way.speculators) + " speculators" : "") +
         (way.is_gated ? ", gate" : "");
}

// Asks until it has enough questions that are answered by one call of a tool that no other question
// has, and by text after its result.
void find_questions(const Endpoint& endpoint, Task& task, std::size_t count) {
  std::istringstream lines(
      program::read_file(std::filesystem::path(program::data_folder) / "tiny/heldout.jsonl"));
  std::set<std::string> names;
  Json documents = Json::array();
  for (std::string line; task.questions.size() < count && std::getline(lines, line);) {
    const Json row = tooldecode::text::parse_json(line);
    if (row.at("format") != "python" || row.at("calls").size() != 1) continue;
    const bool is_new =
        std::none_of(row.at("tools").begin(), row.at("tools").end(), [&](const Json& tool) {
          return names.contains(tool.at("function").at("name").get<std::string>());
        });
    if (!is_new) continue;
    Question question{.messages = row.at("messages"), .tools = row.at("tools")};
    const auto call = endpoint.client.complete(task.request(question), endpoint.stop());
    if (call.calls.size() != 1 || call.calls[0].arguments.empty()) continue;
    question.call    = call.calls[0];
    question.output  = output_of(question.call);
    const auto reply = endpoint.client.complete(
        task.request(question, call.message, question.output), endpoint.stop());
    if (!reply.calls.empty()) continue;
    question.text = reply.text;
    // Asked again, like all later turns: the server now has the prompt in its cache.
    question.natural = Seconds(std::numeric_limits<double>::infinity());
    for (int times = 0; times < 3; ++times) {
      const auto begin = SteadyClock::now();
      static_cast<void>(endpoint.client.complete(task.request(question), endpoint.stop()));
      question.natural = std::min<Seconds>(question.natural, SteadyClock::now() - begin);
    }
    for (const Json& tool : question.tools) {
      const Json& function = tool.at("function");
      names.insert(function.at("name").get<std::string>());
      documents.push_back({{"name", function.at("name")},
                           {"inputSchema", function.at("parameters")},
                           {"annotations", {{"readOnlyHint", true}}}});
    }
    task.questions.push_back(std::move(question));
  }
  if (task.questions.size() < count) throw std::runtime_error("too few questions have one call");
  task.tools = td::ToolSet::from_json(documents);
}

// All ways to speculate take turns, so that they see the same load. The agents of one way run at
// the same time.
RealPoint run_point(const Endpoint& endpoint, const Task& task, std::size_t agents, double latency,
                    std::size_t turns) {
  RealPoint point{agents, latency};
  const auto ways = ways_of(agents, latency, task.generation.count());
  for (const Speculation& way : ways) point.series.push_back({way, {}});
  td::SpeculationGate gate({.overhead = Seconds(gate_overhead)});
  std::vector<std::unique_ptr<Agent>> all;
  for (std::size_t a = 0; a < agents; ++a) {
    all.push_back(std::make_unique<Agent>(endpoint, task, a, Seconds(latency), ways, turns, gate));
  }
  const std::size_t block = agents == 1 ? 1 : 2;
  for (std::size_t first = 0; first < turns; first += block) {
    const std::size_t last = std::min(turns, first + block);
    for (std::size_t k = 0; k < ways.size(); ++k) {
      const std::size_t w = (first / block + k) % ways.size();
      std::vector<std::vector<RealTurn>> done(agents);
      std::vector<std::exception_ptr> failures(agents);
      {
        std::vector<std::jthread> threads;
        for (std::size_t a = 0; a < agents; ++a) {
          threads.emplace_back([&, a] {
            try {
              // Staggered: otherwise they would stay in step.
              std::this_thread::sleep_for(task.generation * static_cast<double>(a) /
                                          static_cast<double>(agents));
              for (std::size_t i = first; i < last; ++i) done[a].push_back(all[a]->turn(w, i));
            } catch (...) {
              failures[a] = std::current_exception();
            }
          });
        }
      }
      for (const auto& failure : failures) {
        if (failure) std::rethrow_exception(failure);
      }
      auto& to = point.series[w].turns;
      for (const auto& of : done) to.insert(to.end(), of.begin(), of.end());
    }
  }
  return point;
}

void print(const RealPoint& point) {
  print_head(agents_of(point.agents) + ", tool latency " + fixed(point.latency, 3) + " s",
             {"way", "turn, ms", "by the model, ms", "off", "time saved", "by the model",
              "hit rate", "answered in the batch", "wasted calls per turn"});
  for (const Series& s : point.series) {
    const bool speculates  = s.way.policy != Policy::none;
    const Estimate saved   = point.saved(s);
    const double expected  = point.expected(s);
    const std::size_t size = s.turns.size();
    print_row({name_of(s.way), fixed(1000 * s.seconds(), 1), fixed(1000 * expected, 1),
               percent(point.deviation(s)),
               speculates ? percent(saved.value) + " +- " + fixed(100 * saved.error, 1) : "",
               speculates ? percent(1 - expected / point.series[0].seconds()) : "",
               speculates ? percent(share(s.hits(), s.speculated())) : "",
               speculates ? percent(share(s.resident(), size)) : "",
               speculates ? fixed(share(s.wasted(), size), 2) : ""});
  }
  std::cout << std::flush;
}

void check(const std::vector<RealPoint>& points, const Task& task, Claims& claims) {
  std::size_t turns = 0, different = 0;
  double worst = 0, least_gated = 1;
  bool is_gate_good = true;
  double min_gain   = 1;
  std::optional<double> saved;  // at T = G
  std::string where, gated, gains;
  for (const RealPoint& point : points) {
    const auto at = [&](const Series& s) {
      return name_of(s.way) + ", " + agents_of(point.agents) + ", tool " + fixed(point.latency, 3) +
             " s";
    };
    for (const Series& s : point.series) {
      turns += s.turns.size();
      different += s.count([](const RealTurn& turn) { return !turn.is_same; });
      if (std::abs(point.deviation(s)) > std::abs(worst)) {
        worst = point.deviation(s), where = at(s);
      }
      if (s.way.is_gated) {
        const Estimate e = point.saved(s);
        is_gate_good     = is_gate_good && e.value >= -0.01 - 2 * e.error;
        if (e.value < least_gated) {
          least_gated = e.value;
          gated       = percent(e.value) + " +- " + fixed(100 * e.error, 1) + " (" + at(s) + ")";
        }
      }
    }
    const double client = point.saved(point.find({.policy = Policy::client})).value;
    const double gain   = point.saved(point.find({.policy = Policy::engine})).value - client;
    if (task.prediction.count() + point.latency <= task.generation.count()) {
      min_gain = std::min(min_gain, gain);
      gains += (gains.empty() ? "" : ", ") + fixed(100 * gain, 1) + " at " +
               fixed(point.latency, 3) + " s with " + agents_of(point.agents);
    }
    if (point.latency == task.generation.count() && point.agents == 1) saved = client;
  }
  std::cout << '\n';
  claims.check("calls, results and texts are those without speculation", different == 0,
               std::to_string(turns - different) + " of " + std::to_string(turns) + " turns");
  claims.check("times are within 10 % of the performance model, by times measured in the same run",
               std::abs(worst) <= 0.1, "at most " + percent(worst) + " off (" + where + ")");
  claims.check("client-side saves at least 21 % at acceptance 0.8, T = G", saved.value() >= 0.21,
               percent(saved.value()));
  claims.check(
      "engine-side saves at least 3 points more than client-side for tools that end within the "
      "reasoning, g + T <= G",
      min_gain >= 0.03, gains);
  claims.check(
      "with the gate no point is slower than no speculation by more than 1 %, twice the standard "
      "error aside",
      is_gate_good, "the worst saves " + gated);
}

Json parameters_of(const RealOptions& options, const Task& task) {
  double natural = 0;
  for (const Question& question : task.questions) {
    natural += question.natural.count() / static_cast<double>(task.questions.size());
  }
  return {{"server", "tooldecode serve, the embedded model, on loopback"},
          {"predictions", "an oracle's: the right call with the wanted probability, else another"},
          {"reasoning", "scripted: the client sleeps until generation_s is over"},
          {"hardware_threads", std::thread::hardware_concurrency()},
          {"questions", task.questions.size()},
          {"max_tokens", task.max_tokens},
          {"call_request_s", rounded(natural)},
          {"generation_s", options.generation},
          {"prediction_s", task.prediction.count()},
          {"gate_overhead_s", gate_overhead},
          {"turns", options.turns},
          {"seed", options.seed}};
}

constexpr std::array columns{"agents",         "tool_latency_s",   "policy",
                             "speculators",    "acceptance",       "gate",
                             "turns",          "seconds_per_turn", "model_seconds",
                             "time_saved",     "time_saved_error", "hit_rate",
                             "resident_share", "wasted_per_turn",  "generation_s",
                             "prediction_s",   "tool_s",           "rest_s"};

std::vector<std::string> rows_of(const std::vector<RealPoint>& points) {
  std::vector<std::string> rows;
  for (const RealPoint& point : points) {
    for (const Series& s : point.series) {
      const Estimate saved = point.saved(s);
      rows.push_back(Json{
          point.agents, point.latency, name(s.way.policy), s.way.speculators, s.way.acceptance,
          s.way.is_gated, s.turns.size(), rounded(s.seconds()), rounded(point.expected(s)),
          rounded(saved.value), rounded(saved.error), rounded(share(s.hits(), s.speculated())),
          rounded(share(s.resident(), s.turns.size())), rounded(share(s.wasted(), s.turns.size())),
          rounded(s.generation()), rounded(s.guess()), rounded(s.tool()), rounded(s.rest())}
                         .text());
    }
  }
  return rows;
}

// Draws measured points with two standard errors each way, and the model's expectation.
void write_plot(const std::string& directory, const std::vector<RealPoint>& points) {
  program::Plot plot{"Time saved against `tooldecode serve`, by tool latency (1 agent)",
                     "tool latency, s",
                     "time saved, %",
                     {}};
  const std::array<Speculation, 4> ways{Speculation{.policy = Policy::client, .acceptance = 0.5},
                                        Speculation{.policy = Policy::client, .acceptance = 0.65},
                                        Speculation{.policy = Policy::client},
                                        Speculation{.policy = Policy::engine}};
  for (const bool is_model : {false, true}) {
    for (const Speculation& way : ways) {
      program::PlotSeries series{name_of(way) + (is_model ? ", model" : "")};
      series.is_curve = is_model;
      for (const RealPoint& point : points) {
        if (point.agents != 1) continue;
        const Series& s      = point.find(way);
        const Estimate saved = point.saved(s);
        const double value =
            100 * (is_model ? 1 - point.expected(s) / point.series[0].seconds() : saved.value);
        series.points.push_back(
            {point.latency, value, value - 200 * saved.error, value + 200 * saved.error});
      }
      plot.series.push_back(std::move(series));
    }
  }
  open_file(std::filesystem::path(directory) / "tool_latency_real.svg") << program::draw_svg(plot);
}

}  // namespace

int real(const RealOptions& options) {
  std::optional<ServerProcess> server;
  if (options.url.empty()) {
    server.emplace(program_that_serves(options.server));
  }
  std::stop_source stop;
  const std::jthread limit([&](std::stop_token ended) {
    if (sleep_for(Seconds(options.limit), std::move(ended))) stop.request_stop();
  });
  Task task{.generation = Seconds(options.generation),
            .prediction = Seconds(options.generation / 4),
            .seed       = options.seed};
  std::vector<RealPoint> points;
  try {
    const Endpoint endpoint(server ? server->url() : options.url, options.model, stop.get_token());
    find_questions(endpoint, task, 20);
    const Json parameters = parameters_of(options, task);
    std::cout << "Calls take the server "
              << fixed(1000 * parameters["call_request_s"].get<double>(), 0)
              << " ms and are padded to G = " << fixed(1000 * options.generation, 0)
              << " ms; predictions take g = " << fixed(1000 * task.prediction.count(), 0)
              << " ms. Ways to speculate take turns in one run.\n";
    const auto run = [&](std::size_t agents, double share, std::size_t turns) {
      points.push_back(run_point(endpoint, task, agents, share * options.generation, turns));
      print(points.back());
    };
    for (const double share : tool_shares) run(1, share, options.turns);
    const std::size_t turns = (options.turns + some_agents - 1) / some_agents;
    for (const double share : {0.5, 1.0}) run(some_agents, share, turns);
  } catch (const std::exception&) {
    if (!stop.stop_requested()) throw;
    throw std::runtime_error("the run took longer than --limit allows");
  }
  Claims claims;
  check(points, task, claims);
  if (!options.out.empty()) {
    write_results(options.out, parameters_of(options, task), claims.report(), columns,
                  rows_of(points));
  }
  if (!options.plots.empty()) write_plot(options.plots, points);
  return claims.all_hold() ? 0 : 1;
}

}  // namespace tool_latency
