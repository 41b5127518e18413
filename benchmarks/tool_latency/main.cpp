// The savings of speculative tool calls by tool latency, agents, speculators and acceptance.
//
//   benchmark_tool_latency simulate [--out FILE] [--plot DIRECTORY] [--seed N] ...
//   benchmark_tool_latency real [--server PROGRAM | --url URL] [--out FILE] [--plot DIRECTORY] ...
//   benchmark_tool_latency guessed [--model NAME] [--speculator NAME] [--out FILE] ...
//
// benchmarks/results/tool_latency.json, tool_latency_real.json and tool_latency_guessed.json, and
// the charts beside them, are outputs of `--out benchmarks/results/FILE --plot benchmarks/results`.
#include <cstdlib>
#include <exception>
#include <iostream>

#include "commands.hpp"
#include <CLI/CLI.hpp>

namespace {

void add_simulate(CLI::App& app, tool_latency::SimulateOptions& options) {
  tool_latency::Engine& engine = options.setup.engine;
  tool_latency::Workload& work = options.setup.workload;
  app.add_option("--out", options.out, "write parameters and points as JSON");
  app.add_option("--plot", options.plots, "write charts as SVG to a directory")
      ->check(CLI::ExistingDirectory);
  app.add_option("--seed", options.setup.seed, "seed of all random draws")->capture_default_str();
  app.add_option("--sessions", work.sessions, "sessions of each agent")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  app.add_option("--turns", work.turns, "turns of a session")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  const auto positive = [&](const char* flag, double& value, const char* what) {
    app.add_option(flag, value, what)->capture_default_str()->check(CLI::Range(1e-6, 1e6));
  };
  const auto natural = [&](const char* flag, double& value, const char* what) {
    app.add_option(flag, value, what)->capture_default_str()->check(CLI::Range(0.0, 1e6));
  };
  positive("--reasoning-tokens", work.reasoning_tokens, "tokens of a turn before its call");
  app.add_option("--spread", work.spread,
                 "share by which reasoning and predictions vary around their means")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  natural("--tool-deviation", work.tool_deviation,
          "standard deviation of a tool's time, as a share of its mean");
  positive("--step", engine.step, "seconds of a decoding step with an empty batch");
  natural("--step-per-sequence", engine.step_per_sequence,
          "seconds that each sequence adds to a step");
  natural("--step-per-draft", engine.step_per_draft, "seconds that each prediction adds to a step");
  positive("--prefill-rate", engine.prefill_rate, "tokens per second");
  natural("--round-trip", engine.round_trip, "seconds between engine and client, both ways");
  natural("--eviction", engine.eviction, "seconds to leave the batch and find a place in it");
  positive("--prediction", options.setup.speculation.prediction,
           "seconds until a predicted call is ready");
}

void add_real(CLI::App& app, tool_latency::RealOptions& options) {
  auto* server =
      app.add_option("--server", options.server,
                     "`tooldecode`, which is started; default: the one built beside this "
                     "program")
          ->check(CLI::ExistingFile);
  app.add_option("--url", options.url, "a running server: http://HOST:PORT")->excludes(server);
  app.add_option("--model", options.model, "the server's model")->capture_default_str();
  app.add_option("--out", options.out, "write parameters and points as JSON");
  app.add_option("--plot", options.plots, "write a chart as SVG to a directory")
      ->check(CLI::ExistingDirectory);
  app.add_option(
         "--generation", options.generation,
         "seconds to which a call is padded; a prediction takes a quarter, a tool up to twice")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 10.0));
  app.add_option("--turns", options.turns, "turns per way to speculate and tool latency")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--limit", options.limit, "maximum seconds of the whole run")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 3600.0));
  app.add_option("--seed", options.seed, "seed of all random draws")->capture_default_str();
}

void add_guessed(CLI::App& app, tool_latency::GuessedOptions& options) {
  app.add_option("--server", options.server,
                 "`tooldecode`, which is started twice; default: the one built beside this program")
      ->check(CLI::ExistingFile);
  app.add_option(
         "--model", options.model,
         "the model whose calls count: an argument of `tooldecode serve --model`, or embedded")
      ->capture_default_str();
  app.add_option("--speculator", options.speculator,
                 "the model that guesses calls, in the same form")
      ->capture_default_str();
  app.add_option("--out", options.out, "write parameters and points as JSON");
  app.add_option("--transcripts", options.transcripts,
                 "write the dialogues as JSON, one line per task");
  app.add_option("--tasks", options.tasks, "maximum number of tasks; every policy does each")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000));
  app.add_option("--limit", options.limit, "no task starts after so many seconds")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e5));
  app.add_option("--short-tool", options.short_tool,
                 "mean seconds of the tools of every other task")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--long-tool", options.long_tool, "mean seconds of the tools of the other tasks")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--seed", options.seed, "seed of the tools' times")->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The savings of speculative tool calls by tool latency, agents and speculators"};
  app.require_subcommand(1);
  tool_latency::SimulateOptions simulated;
  simulated.setup.workload.sessions = 24;
  add_simulate(*app.add_subcommand("simulate", "the sweep as a discrete-event simulation"),
               simulated);
  tool_latency::RealOptions measured;
  auto* real = app.add_subcommand("real", "agents with sleeping tools against `tooldecode serve`");
  add_real(*real, measured);
  tool_latency::GuessedOptions guesses;
  auto* guessed = app.add_subcommand(
      "guessed", "agents whose model reasons, with calls that another model guesses");
  add_guessed(*guessed, guesses);
  CLI11_PARSE(app, argc, argv);
  try {
    if (guessed->parsed()) return tool_latency::guessed(guesses);
    return real->parsed() ? tool_latency::real(measured) : tool_latency::simulate(simulated);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
