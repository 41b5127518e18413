/// \file
/// The outputs of the sweep: a file of numbers, and charts.
#pragma once

#include <string>

#include <tooldecode/text/json_value.hpp>

#include "sweep.hpp"

namespace tool_latency {

/// Writes parameters, claims with their results, and the points of tables and charts, one line
/// each.
void write_json(const std::string& path, Sweep& sweep, const tooldecode::JsonValue& claims);

/// Draws charts like the paper's figures 1, 3 and 5 to 8: throughput by agents, the map of
/// speedups, throughput by hit rate, time saved by tool latency, by quality and by speculators,
/// costs, and the engine's side against the client's.
void write_plots(const std::string& directory, Sweep& sweep);

}  // namespace tool_latency
