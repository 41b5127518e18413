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

}  // namespace tool_latency
