/// \file
/// Definitions of target_distribution.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode::verify {

TOOLDECODE_INLINE bool TargetDistribution::fill_probabilities(
    std::span<double> probabilities) const noexcept {
  TOOLDECODE_ASSERT(probabilities.size() == logits.size());
  const float top = greatest(logits);
  if (top == none || temperature == 0) {
    std::fill(probabilities.begin(), probabilities.end(), 0.0);
    if (top == none) return false;
    probabilities[static_cast<std::size_t>(*find_greedy(logits))] = 1;
    return true;
  }
  double sum = 0;
  for (std::size_t t = 0; t < logits.size(); ++t) sum += probabilities[t] = weight(t, top);
  for (double& p : probabilities) p /= sum;
  return true;
}

TOOLDECODE_INLINE double TargetDistribution::weight(std::size_t t, float top) const noexcept {
  return logits[t] == none ? 0
                           : std::exp(static_cast<double>(logits[t]) - static_cast<double>(top));
}

}  // namespace tooldecode::verify
