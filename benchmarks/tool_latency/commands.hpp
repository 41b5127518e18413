/// \file
/// The subcommands of benchmark_tool_latency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "simulation.hpp"

namespace tool_latency {

/// Options of `simulate`.
struct SimulateOptions {
  Setup setup{};  ///< of the engine and the work; the sweep sets the rest
  std::string out{};
  std::string plots{};  ///< a directory for SVG
};

/// Runs the sweep and reports; returns 0 if all claims hold.
int simulate(const SimulateOptions& options);

/// Options of `real`; times in seconds.
struct RealOptions {
  std::string server{};  ///< the server program; by default the one built beside this one
  std::string url{};     ///< of a running server
  std::string model  = "tiny";
  std::string out    = {};    ///< JSON
  std::string plots  = {};    ///< a directory for SVG
  double generation  = 0.15;  ///< G, to which calls are padded; g is G / 4 and T up to 2 G
  std::size_t turns  = 20;    ///< per way to speculate and tool latency
  double limit       = 180;
  std::uint64_t seed = 1;
};

/// Runs agents with sleeping tools against a server; returns 0 if all claims hold.
int real(const RealOptions& options);

/// Options of `guessed`; times in seconds.
struct GuessedOptions {
  std::string server{};  ///< the server program; by default the one built beside this one
  std::string model      = "smollm2";  ///< the main model: an argument of `serve`, or "embedded"
  std::string speculator = "embedded";
  std::string out{};
  std::string transcripts{};  ///< JSON, one line per task
  std::size_t tasks  = 200;
  double limit       = 2400;  ///< for all tasks together
  double short_tool  = 0.8;   ///< mean time of a short tool
  double long_tool   = 2;
  std::uint64_t seed = 1;
};

/// Runs agents whose model reasons and whose calls another model guesses; returns 0 if all claims
/// hold.
int guessed(const GuessedOptions& options);

}  // namespace tool_latency
