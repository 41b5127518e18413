#pragma once

#include <algorithm>

#include <tooldecode/decode/output.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::chrono::nanoseconds PhaseTimes::total() const noexcept {
  return prefill + model + constraint + sampling + drafting;
}

TOOLDECODE_INLINE DraftCounts& DraftCounts::operator+=(const DraftCounts& other) {
  rounds += other.rounds;
  nodes += other.nodes;
  levels += other.levels;
  const std::size_t depth = std::max(tried.size(), other.tried.size());
  tried.resize(depth);
  accepted.resize(depth);
  for (std::size_t d = 0; d < other.tried.size(); ++d) {
    tried[d] += other.tried[d];
    accepted[d] += other.accepted[d];
  }
  return *this;
}

}  // namespace tooldecode
