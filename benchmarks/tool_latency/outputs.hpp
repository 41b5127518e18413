/// \file
/// What the sweep leaves behind: a file of numbers, and charts.
#pragma once

#include <string>

#include <tooldecode/text/json_value.hpp>

#include "sweep.hpp"

namespace tool_latency {

/// Parameters, what was claimed and found, and the points of tables and charts, a line each.
void write_json(const std::string& path, Sweep& sweep, const tooldecode::JsonValue& claims);

/// Charts like the paper's figures 1, 3 and 5 to 8: throughput by agents, the map of speedups,
/// throughput by hit rate, time saved by tool latency, by quality and by speculators, costs,
/// engine-side against client-side.
void write_plots(const std::string& directory, Sweep& sweep);

}  // namespace tool_latency
