/// \file
/// The subcommands of benchmark_tool_latency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "simulation.hpp"

namespace tool_latency {

/// What `simulate` is told.
struct SimulateOptions {
  Setup setup{};        ///< of the engine and the work; the sweep sets the rest
  std::string out{};    ///< JSON
  std::string plots{};  ///< a directory for SVG
};

/// Runs the sweep and reports; 0 where all that is claimed holds.
int simulate(const SimulateOptions& options);

/// What `real` is told; times in seconds.
struct RealOptions {
  std::string server{};  ///< the program that serves; by default the one built beside this one
  std::string url{};     ///< of a server that runs already
  std::string model  = "tiny";
  std::string out    = {};    ///< JSON
  std::string plots  = {};    ///< a directory for SVG
  double generation  = 0.15;  ///< G, to which calls are padded; g is G / 4 and T up to 2 G
  std::size_t turns  = 20;    ///< of each way to speculate at each tool latency
  double limit       = 180;   ///< of the whole run
  std::uint64_t seed = 1;
};

/// Runs agents with sleeping tools against a server; 0 where all that is claimed holds.
int real(const RealOptions& options);

/// What `guessed` is told; times in seconds.
struct GuessedOptions {
  std::string server{};  ///< the program that serves; by default the one built beside this one
  std::string model      = "smollm2";   ///< whose calls count: what `serve` takes, or "embedded"
  std::string speculator = "embedded";  ///< that guesses them
  std::string out{};                    ///< JSON
  std::string transcripts{};            ///< JSON, a line for each task
  std::size_t tasks  = 200;
  double limit       = 2400;  ///< of the tasks together
  double short_tool  = 0.8;   ///< mean time of a tool, by turns
  double long_tool   = 2;
  std::uint64_t seed = 1;
};

/// Runs agents whose model reasons and whose calls another model guesses; 0 where all that is
/// claimed holds.
int guessed(const GuessedOptions& options);

}  // namespace tool_latency
