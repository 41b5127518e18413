// Agents whose model decodes its reasoning, with calls that another model guesses, on two
// `tooldecode serve`.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/research/performance_model.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include "commands.hpp"
#include "guessed_tasks.hpp"
#include "guessing_agent.hpp"
#include "model_place.hpp"
#include "report.hpp"
#include "server_process.hpp"
#include <program/formats.hpp>

namespace tool_latency {

namespace {

namespace td = tooldecode;

constexpr const char* format_name = "react";  // a thought, then a call
constexpr std::size_t task_calls  = 2;
constexpr std::array ways{Speculation{}, Speculation{.policy = Policy::client},
                          Speculation{.policy = Policy::client, .is_gated = true},
                          Speculation{.policy = Policy::engine}};
enum Way : std::size_t { none, client, gated, engine };

std::string name_of(const Speculation& way) {
  return std::string(name(way.policy)) + (way.is_gated ? ", gate" : "");
}

struct Served {
  ServerProcess process;
  Endpoint endpoint;

  Served(const std::string& program, const std::string& model,
         const std::vector<std::string>& options, const std::stop_token& stop)
      : process(program_that_serves(program), arguments(model, options)),
        endpoint(process.url(), served_name(arguments(model, {}).at(1)), stop) {}

 private:
  static std::vector<std::string> arguments(const std::string& model,
                                            const std::vector<std::string>& more) {
    std::vector<std::string> all{"--model",
                                 model == "embedded" ? model_place(model).string() : model};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::string served_name(const std::filesystem::path& model) {
    return (model.extension() == ".gguf" ? model.stem() : model.filename()).string();
  }
};

struct Mean {
  double value = 0, error = 0;

  static Mean of(const std::vector<double>& all) {
    const auto n      = static_cast<double>(all.size());
    const double mean = all.empty() ? 0 : std::accumulate(all.begin(), all.end(), 0.0) / n;
    double squares    = 0;
    for (const double one : all) squares += (one - mean) * (one - mean);
    return {mean, n > 1 ? std::sqrt(squares / (n - 1) / n) : 0};
  }
};

double seconds_of(const Endpoint& endpoint, Json request, std::size_t tokens, Json& usage) {
  request["max_tokens"] = tokens;
  const auto begin      = SteadyClock::now();
  usage                 = endpoint.client.complete(request, endpoint.stop()).response.at("usage");
  return Seconds(SteadyClock::now() - begin).count();
}

// The times of the main model's server, measured again for each agent, between the runs of its
// tasks.
struct Rates {
  std::vector<double> prefill{}, decode{}, overhead{};  // φ, δ, o in seconds
  std::size_t shared_tokens = 0;                        // common prefix of all prompts

  void look(const Endpoint& endpoint, const Json& request) {
    constexpr std::size_t more = 17;
    Json usage;
    if (shared_tokens == 0) {
      const Json hello{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
      static_cast<void>(seconds_of(endpoint, hello, 1, usage));
      shared_tokens = usage.at("prompt_tokens").get<std::size_t>();
    }
    const double cold   = seconds_of(endpoint, request, 1, usage);
    const double read   = usage.at("prompt_tokens").get<double>();
    const double known  = seconds_of(endpoint, request, 1, usage);
    const double longer = seconds_of(endpoint, request, more, usage);
    const double token  = (longer - known) / (usage.at("completion_tokens").get<double>() - 1);
    prefill.push_back((cold - known) / (read - static_cast<double>(shared_tokens)));
    decode.push_back(token);
    overhead.push_back(std::max(0.0, known - token) / 2);
  }
  [[nodiscard]] td::EngineRates mean() const {
    return {Seconds(Mean::of(overhead).value), Seconds(Mean::of(prefill).value),
            Seconds(Mean::of(decode).value)};
  }
};

// A task under all policies.
struct Compared {
  bool has_long = false;
  std::array<TaskRun, ways.size()> runs{};
};

// Results of the tasks of some tools.
struct Summary {
  std::string tools;
  std::vector<const Compared*> tasks;
  const td::Tokenizer* tokenizer = nullptr;
  const td::ToolSet* all_tools   = nullptr;
  Rates rates{};

  template <class Value>
  [[nodiscard]] Mean mean(std::size_t way, Value value) const {
    std::vector<double> all;
    for (const Compared* task : tasks) all.push_back(value(task->runs[way]));
    return Mean::of(all);
  }
  template <class Value>
  [[nodiscard]] double mean_of_calls(std::size_t way, Value value) const {
    std::vector<double> all;
    for (const Compared* task : tasks) {
      for (const MadeCall& call : task->runs[way].calls) all.push_back(value(call));
    }
    return Mean::of(all).value;
  }
  template <class Value>
  [[nodiscard]] std::size_t sum(std::size_t way, Value value) const {
    std::size_t all = 0;
    for (const Compared* task : tasks) all += value(task->runs[way]);
    return all;
  }
  [[nodiscard]] std::size_t calls(std::size_t way) const {
    return sum(way, [](const TaskRun& run) { return run.calls.size(); });
  }
  [[nodiscard]] std::size_t hits(std::size_t way) const {
    return sum(way, [](const TaskRun& run) { return run.hits(); });
  }
  [[nodiscard]] double hit_rate(std::size_t way) const { return share(hits(way), calls(way)); }
  // α: the share of correct guesses among those that came in time.
  [[nodiscard]] double acceptance() const {
    return share(hits(client), sum(client, [](const TaskRun& run) { return run.guesses.size(); }));
  }
  [[nodiscard]] double guess() const {
    std::vector<double> all;
    for (const Compared* task : tasks) {
      for (const std::size_t way : {client, engine}) {
        for (const Seconds time : task->runs[way].guesses) all.push_back(time.count());
      }
    }
    return Mean::of(all).value;
  }
  [[nodiscard]] double seconds(std::size_t way) const {
    return mean(way, [](const TaskRun& run) { return run.total.count(); }).value;
  }
  [[nodiscard]] std::size_t same(std::size_t way) const {
    return static_cast<std::size_t>(std::count_if(tasks.begin(), tasks.end(), [&](const auto* one) {
      return one->runs[way].is_same(one->runs[none]);
    }));
  }
  // Share of the time without speculation; compares runs of the same task.
  [[nodiscard]] Mean saved(std::size_t way) const {
    std::vector<double> all;
    for (const Compared* task : tasks) {
      all.push_back((task->runs[none].total - task->runs[way].total).count());
    }
    const Mean mean = Mean::of(all);
    return {mean.value / seconds(none), mean.error / seconds(none)};
  }

  // Eq. 1 with the times of `from`: each call has its own G and T; g and the share of correct
  // guesses are means.
  [[nodiscard]] double by_eq1(std::size_t way, std::size_t from) const {
    const Seconds g(guess());
    const Seconds mean_tool(
        mean_of_calls(none, [](const MadeCall& call) { return call.tool.count(); }));
    double all = 0;
    for (const Compared* task : tasks) {
      const TaskRun& run = task->runs[from];
      Seconds rest       = run.total;
      for (const MadeCall& call : run.calls) {
        rest -= call.generation + call.tool;
        // With speculation a call's wait is not the tool's time, because the result may be there
        // already.
        const td::TurnTimes times{call.generation, std::min(g, call.generation),
                                  from == none ? call.tool : mean_tool};
        all += time_with(1, times, way == none ? 0 : hit_rate(way)).count();
      }
      all += rest.count();
    }
    return all / static_cast<double>(tasks.size());
  }
  // Eq. 6: the measured time without speculation, less the savings of the equation. As the paper has
  // it, or with what it leaves out: a verified token takes as long as one that is read, and a right
  // call waits for what is left of its tool.
  enum class Form { papers, measured };
  [[nodiscard]] double by_eq6(Form equation = Form::papers) const {
    td::EngineRates known = rates.mean();
    const Seconds g(guess());
    if (equation == Form::measured) known.verify = known.prefill;
    const program::Format& form = program::format_named(format_name);
    double all                  = 0;
    for (const Compared* task : tasks) {
      const TaskRun& run = task->runs[none];
      std::vector<td::AgentTurn> turns;
      for (const MadeCall& call : run.calls) {
        const std::vector<td::ToolCall> made{call.call};
        const auto written =
            static_cast<double>(tokenizer->encode(form.write(made, *all_tools)).size());
        td::AgentTurn turn{static_cast<double>(call.tokens) - written, written, 0, call.tool};
        if (equation == Form::measured) {
          turn.late = std::max(Seconds(0), g + call.tool - turn.reasoning_tokens * known.decode);
        }
        turns.push_back(turn);
      }
      all += (run.total + engine_time_with(known, 0, turns, hit_rate(engine)) -
              engine_time_cached(known, 0, turns))
                 .count();
    }
    return all / static_cast<double>(tasks.size());
  }
  [[nodiscard]] double expected(std::size_t way) const {
    return by_eq1(way, way == engine ? engine : none);
  }
  [[nodiscard]] double deviation(std::size_t way) const { return seconds(way) / expected(way) - 1; }
};

void print(const Summary& of) {
  print_head(
      of.tools + " tools, " + std::to_string(of.tasks.size()) + " tasks: G = " +
          fixed(of.mean_of_calls(none, [](const auto& call) { return call.generation.count(); }),
                2) +
          " s, g = " + fixed(of.guess(), 3) + " s, T = " +
          fixed(of.mean_of_calls(none, [](const auto& call) { return call.tool.count(); }), 2) +
          " s, acceptance " + percent(of.acceptance()),
      {"policy", "task, s", "by Eq. 1, s", "off", "by Eq. 6, s", "by Eq. 6, late", "time saved",
       "by Eq. 1", "hit rate", "answered in the batch", "wasted per call", "same answers"});
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const Mean saved = of.saved(way);
    const Mean time  = of.mean(way, [](const TaskRun& run) { return run.total.count(); });
    const auto count = of.calls(way);
    const bool runs  = way != none;
    print_row(
        {name_of(ways[way]), fixed(time.value, 2) + " +- " + fixed(time.error, 2),
         fixed(of.expected(way), 2), percent(of.deviation(way)),
         way == engine ? fixed(of.by_eq6(), 2) : "",
         way == engine ? fixed(of.by_eq6(Summary::Form::measured), 2) : "",
         runs ? percent(saved.value) + " +- " + fixed(100 * saved.error, 1) : "",
         runs ? percent(1 - of.expected(way) / of.seconds(none)) : "",
         runs ? percent(of.hit_rate(way)) : "",
         runs ? percent(share(of.sum(way, [](const TaskRun& run) { return run.counts.residents; }),
                              count))
              : "",
         runs ? fixed(
                    share(of.sum(way, [](const TaskRun& run) { return run.counts.wasted; }), count),
                    2)
              : "",
         std::to_string(of.same(way)) + " of " + std::to_string(of.tasks.size())});
  }
  std::cout << std::flush;
}

void check(const Summary& all, const Summary& brief, const Summary& longer, Claims& claims) {
  std::size_t same = 0;
  double worst     = 0;
  for (const std::size_t way : {client, gated, engine}) {
    same += all.same(way);
    if (std::abs(all.deviation(way)) > std::abs(worst)) worst = all.deviation(way);
  }
  const auto told = [](const Mean& mean) {
    return percent(mean.value) + " +- " + fixed(100 * mean.error, 1);
  };
  const auto least = [](double aim, double predicted) { return std::min(aim, predicted); };
  claims.check("thoughts, calls and results are those without speculation",
               same == 3 * all.tasks.size(),
               std::to_string(same) + " of " + std::to_string(3 * all.tasks.size()) + " tasks");
  claims.check("times are within 5 % of Eq. 1, by times measured in the same run",
               std::abs(worst) <= 0.05, "at most " + percent(worst) + " off");
  const Mean saved       = longer.saved(client);
  const double predicted = 1 - longer.expected(client) / longer.seconds(none);
  claims.check(
      "client-side saves at least 21 %, or what Eq. 1 has for the measured acceptance, twice the "
      "standard error aside, where tools are long",
      saved.value >= least(0.21, predicted) - 2 * saved.error,
      told(saved) + ", by Eq. 1 " + percent(predicted));
  const double gain = brief.saved(engine).value - brief.saved(client).value;
  const double eq6  = (brief.expected(client) - brief.by_eq6()) / brief.seconds(none);
  claims.check(
      "engine-side saves at least 3 points more than client-side, or what Eq. 6 has, where tools "
      "end within the reasoning",
      gain >= least(0.03, eq6), fixed(100 * gain, 1) + ", by Eq. 6 " + fixed(100 * eq6, 1));
  const Mean least_gated = std::min(brief.saved(gated), longer.saved(gated),
                                    [](const Mean& a, const Mean& b) { return a.value < b.value; });
  claims.check("with the gate it is not slower by more than 1 %, twice the standard error aside",
               least_gated.value >= -0.01 - 2 * least_gated.error,
               "the worst saves " + told(least_gated));
}

constexpr std::array columns{"tools",           "policy",       "gate",           "tasks",
                             "calls",           "task_s",       "task_s_error",   "none_s",
                             "eq1_s",           "eq6_s",        "eq6_measured_s", "time_saved",
                             "saved_error",     "acceptance",   "hit_rate",       "resident_share",
                             "wasted_per_call", "generation_s", "prediction_s",   "tool_s",
                             "late_guesses",    "guess_errors", "same_tasks"};

std::vector<std::string> rows_of(const Summary& of) {
  std::vector<std::string> rows;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const Mean time  = of.mean(way, [](const TaskRun& run) { return run.total.count(); });
    const Mean saved = of.saved(way);
    const auto calls = of.calls(way);
    const auto count = [&](auto member) {
      return of.sum(way, [&](const TaskRun& run) { return run.counts.*member; });
    };
    using Counts = td::SpeculationCounts;
    rows.push_back(
        Json{of.tools,
             name(ways[way].policy),
             ways[way].is_gated,
             of.tasks.size(),
             calls,
             rounded(time.value),
             rounded(time.error),
             rounded(of.seconds(none)),
             rounded(of.expected(way)),
             way == engine ? Json(rounded(of.by_eq6())) : Json(),
             way == engine ? Json(rounded(of.by_eq6(Summary::Form::measured))) : Json(),
             rounded(saved.value),
             rounded(saved.error),
             rounded(of.acceptance()),
             rounded(of.hit_rate(way)),
             rounded(share(count(&Counts::residents), calls)),
             rounded(share(count(&Counts::wasted), calls)),
             rounded(of.mean_of_calls(way, [](const auto& c) { return c.generation.count(); })),
             rounded(of.guess()),
             rounded(of.mean_of_calls(way, [](const auto& c) { return c.tool.count(); })),
             count(&Counts::late),
             count(&Counts::errors),
             of.same(way)}
            .text());
  }
  return rows;
}

void write_transcript(std::ostream& out, const GuessedTask& task, const Compared& compared) {
  Json line{{"questions", task.questions}, {"has_long", task.has_long}};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const TaskRun& run = compared.runs[way];
    Json calls         = Json::array();
    for (const MadeCall& call : run.calls) {
      calls.push_back({{"thought", call.text},
                       {"call", call.call.canonical_text()},
                       {"result", call.output},
                       {"generation_s", rounded(call.generation.count())},
                       {"tool_s", rounded(call.tool.count())}});
    }
    line["runs"][name_of(ways[way])] = {
        {"seconds", rounded(run.total.count())}, {"hits", run.hits()}, {"calls", calls}};
  }
  out << line.text() << std::endl;
}

// Runs as many tasks as fit into the time, each under all policies, which take turns at being
// first.
std::vector<Compared> run_tasks(const std::vector<GuessedTask>& tasks,
                                const GuessedOptions& options, const GuessedSetup& setup,
                                const Endpoint& endpoint, const Endpoint& guesser, Rates& rates,
                                std::size_t& failed) {
  std::deque<GuessingAgent> agents;
  for (const Speculation& way : ways) {
    agents.emplace_back(endpoint, guesser, setup, way, task_calls);
  }
  std::optional<std::ofstream> transcripts;
  if (!options.transcripts.empty()) transcripts = open_file(options.transcripts);
  std::vector<Compared> done;
  const auto begin = SteadyClock::now();
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const double passed = Seconds(SteadyClock::now() - begin).count();
    if (t > 0 && passed * (1 + 1 / static_cast<double>(t)) > options.limit) break;
    const GuessedTask& task = tasks[t];
    Compared compared{.has_long = task.has_long};
    try {
      if (task.is_first) rates.look(endpoint, GuessingAgent::request_of(task, setup));
      static_cast<void>(guesser.client.complete(
          GuessingAgent::guess_of(task.tools, task.questions.front(), setup), guesser.stop()));
      // Whichever policy is first, the server has only the documents of earlier runs in its prefix
      // cache, which holds only the last sequence.
      Json other        = GuessingAgent::request_of(task, setup);
      other["messages"] = messages_of("Hello!");
      for (std::size_t k = 0; k < ways.size(); ++k) {
        Json usage;
        static_cast<void>(seconds_of(endpoint, other, 1, usage));
        const std::size_t way = (t + k) % ways.size();
        compared.runs[way]    = agents[way].run(task);
      }
    } catch (const std::exception& error) {
      if (endpoint.stop().stop_requested()) throw;
      if (failed++ == 0) std::cerr << "a task failed: " << error.what() << '\n';
      continue;
    }
    if (transcripts) write_transcript(*transcripts, task, compared);
    done.push_back(std::move(compared));
    std::cerr << "task " << done.size() << " of " << tasks.size() << ", "
              << fixed(Seconds(SteadyClock::now() - begin).count(), 0) << " s, none "
              << fixed(done.back().runs[none].total.count(), 1) << " s, client "
              << fixed(done.back().runs[client].total.count(), 1) << " s, engine "
              << fixed(done.back().runs[engine].total.count(), 1) << " s" << std::endl;
  }
  const td::SubmissionCounts told = agents[engine].submissions();
  std::cout << "Results told to the engine: " << told.told << ", in vain: " << told.errors
            << (told.first_error.empty() ? "" : ", the first: " + told.first_error) << '\n';
  return done;
}

}  // namespace

int guessed(const GuessedOptions& options) {
  const auto asked = read_asked_tools();
  const auto tasks = make_tasks(asked, options.tasks);
  const GuessedSetup setup{.tools      = read_only_tools(asked),
                           .short_tool = options.short_tool,
                           .long_tool  = options.long_tool,
                           .seed       = options.seed};
  const std::stop_source stop;
  const Served main(options.server, options.model,
                    {"--format", format_name, "--shots", "0", "--prefix-cache", "440"},
                    stop.get_token());
  const Served guesser(options.server, options.speculator, {}, stop.get_token());
  const td::Tokenizer tokenizer = td::load_tokenizer(model_place(options.model));
  Rates rates;
  std::size_t failed = 0;
  const auto done =
      run_tasks(tasks, options, setup, main.endpoint, guesser.endpoint, rates, failed);
  if (done.size() < 2) throw std::runtime_error("too few tasks ended: --limit may be too short");

  std::array<Summary, 3> parts;
  constexpr std::array names{"all", "short", "long"};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = {names[i], {}, &tokenizer, &setup.tools, rates};
    for (const Compared& one : done) {
      if (i == 0 || one.has_long == (i == 2)) parts[i].tasks.push_back(&one);
    }
    print(parts[i]);
  }
  const Summary& all          = parts[0];
  const td::EngineRates known = rates.mean();
  const auto tokens = all.mean_of_calls(none, [](const auto& c) { return double(c.tokens); });
  Json parameters{{"server", "tooldecode serve, on loopback, one thread"},
                  {"model", options.model},
                  {"speculator", options.speculator},
                  {"predictions", "the speculator's: the call at once, without reasoning"},
                  {"reasoning", "the model's own, in free text before its call"},
                  {"tasks", done.size()},
                  {"failed_tasks", failed},
                  {"calls_per_task", task_calls},
                  {"tokens_per_call", rounded(tokens)},
                  {"short_tool_s", setup.short_tool},
                  {"long_tool_s", setup.long_tool},
                  {"tool_deviation", Workload{}.tool_deviation},
                  {"prefill_s", rounded(known.prefill.count())},
                  {"decode_s", rounded(known.decode.count())},
                  {"overhead_s", rounded(known.overhead.count())},
                  {"max_tokens", setup.max_tokens},
                  {"seed", setup.seed}};
  std::cout << '\n' << parameters.text({.indent = 1}) << "\n\n";
  Claims claims;
  check(all, parts[1], parts[2], claims);
  if (!options.out.empty()) {
    std::vector<std::string> rows;
    for (const Summary& part : parts) {
      for (std::string& row : rows_of(part)) rows.push_back(std::move(row));
    }
    write_results(options.out, parameters, claims.report(), columns, rows);
  }
  return claims.all_hold() ? 0 : 1;
}

}  // namespace tool_latency
