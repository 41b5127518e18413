#pragma once

#include <algorithm>

#include <tooldecode/execute/client_turn.hpp>

namespace tooldecode {

TOOLDECODE_INLINE SpeculationCounts& SpeculationCounts::operator+=(const SpeculationCounts& other) {
  proposed += other.proposed;
  started += other.started;
  hits += other.hits;
  residents += other.residents;
  misses += other.misses;
  wasted += other.wasted;
  cancelled += other.cancelled;
  if (errors == 0) first_error = other.first_error;
  errors += other.errors;
  late += other.late;
  return *this;
}

TOOLDECODE_INLINE Seconds saved_time(std::span<const ToolRun> runs) {
  Seconds all{}, left{};
  for (const ToolRun& run : runs) {
    if (!run.begin || !run.asked) continue;
    all  = std::max(all, run.time);
    left = std::max(left, std::min(run.time, *run.begin + run.time - *run.asked));
  }
  return all - left;
}

}  // namespace tooldecode
