/// \file
/// The subcommands of benchmark_tool_latency.
#pragma once

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

}  // namespace tool_latency
