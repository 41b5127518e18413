/// \file
/// The softmax of a row of logits by its definition, in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode::test {

/// Probabilities of a distribution; all zero if no token is possible.
[[nodiscard]] inline std::vector<double> softmax(const verify::TargetDistribution& distribution) {
  std::vector<double> p(distribution.logits.size());  // [V]
  const auto top = std::max_element(distribution.logits.begin(), distribution.logits.end());
  if (p.empty() || *top == -std::numeric_limits<float>::infinity()) return p;
  if (distribution.temperature == 0) {
    p[static_cast<std::size_t>(top - distribution.logits.begin())] = 1;
    return p;
  }
  long double sum = 0;
  for (const float logit : distribution.logits)
    sum += std::exp(static_cast<long double>(logit) - *top);
  for (std::size_t t = 0; t < p.size(); ++t) {
    p[t] = static_cast<double>(std::exp(static_cast<long double>(distribution.logits[t]) - *top) /
                               sum);
  }
  return p;
}

}  // namespace tooldecode::test
