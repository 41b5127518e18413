// What speculative tool calls save, by tool latency, agents, speculators and acceptance.
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
  app.add_option("--seed", options.setup.seed, "of all that is drawn")->capture_default_str();
  app.add_option("--sessions", work.sessions, "of each agent")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  app.add_option("--turns", work.turns, "of a session")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  const auto positive = [&](const char* flag, double& value, const char* what) {
    app.add_option(flag, value, what)->capture_default_str()->check(CLI::Range(1e-6, 1e6));
  };
  const auto natural = [&](const char* flag, double& value, const char* what) {
    app.add_option(flag, value, what)->capture_default_str()->check(CLI::Range(0.0, 1e6));
  };
  positive("--reasoning-tokens", work.reasoning_tokens, "that a turn writes before its call");
  app.add_option("--spread", work.spread,
                 "share by which reasoning and predictions vary around their means")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  natural("--tool-deviation", work.tool_deviation,
          "standard deviation of a tool's time, as a share of its mean");
  positive("--step", engine.step, "seconds of a decoding step, as if by the weights alone");
  natural("--step-per-sequence", engine.step_per_sequence, "seconds that a sequence adds to it");
  natural("--step-per-draft", engine.step_per_draft, "seconds that a prediction adds to it");
  positive("--prefill-rate", engine.prefill_rate, "tokens per second");
  natural("--round-trip", engine.round_trip, "seconds between engine and client, both ways");
  natural("--eviction", engine.eviction, "seconds to leave the batch and find a place in it");
  positive("--prediction", options.setup.speculation.prediction,
           "seconds until a predicted call is there");
}

void add_real(CLI::App& app, tool_latency::RealOptions& options) {
  auto* server =
      app.add_option("--server", options.server,
                     "`tooldecode`, which is started; default: the one built beside this "
                     "program")
          ->check(CLI::ExistingFile);
  app.add_option("--url", options.url, "of a server that runs: http://HOST:PORT")->excludes(server);
  app.add_option("--model", options.model, "its model")->capture_default_str();
  app.add_option("--out", options.out, "write parameters and points as JSON");
  app.add_option("--plot", options.plots, "write a chart as SVG to a directory")
      ->check(CLI::ExistingDirectory);
  app.add_option(
         "--generation", options.generation,
         "seconds to which a call is padded; a prediction takes a quarter, a tool up to twice")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 10.0));
  app.add_option("--turns", options.turns, "of each way to speculate at each tool latency")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--limit", options.limit, "most seconds of the whole run")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 3600.0));
  app.add_option("--seed", options.seed, "of all that is drawn")->capture_default_str();
}

void add_guessed(CLI::App& app, tool_latency::GuessedOptions& options) {
  app.add_option("--server", options.server,
                 "`tooldecode`, which is started twice; default: the one built beside this program")
      ->check(CLI::ExistingFile);
  app.add_option("--model", options.model,
                 "whose calls count: what `tooldecode serve --model` takes, or embedded")
      ->capture_default_str();
  app.add_option("--speculator", options.speculator, "the model that guesses them, likewise")
      ->capture_default_str();
  app.add_option("--out", options.out, "write parameters and points as JSON");
  app.add_option("--transcripts", options.transcripts, "write what was said, a task a line");
  app.add_option("--tasks", options.tasks, "most tasks, each done by every policy")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000));
  app.add_option("--limit", options.limit, "seconds after which no task begins")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e5));
  app.add_option("--short-tool", options.short_tool, "mean seconds of a tool of every other task")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--long-tool", options.long_tool, "of the tools of the others")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--seed", options.seed, "of the tools' times")->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"What speculative tool calls save, by tool latency, agents and speculators"};
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
