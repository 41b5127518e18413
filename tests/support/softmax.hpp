/// \file
/// The law of a row of logits by its definition, in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <tooldecode/verify/target_law.hpp>

namespace tooldecode::test {

/// Probabilities of a law; all zero where no token is possible.
[[nodiscard]] inline std::vector<double> softmax(const TargetLaw& law) {
  std::vector<double> p(law.logits.size());  // [V]
  const auto top = std::max_element(law.logits.begin(), law.logits.end());
  if (p.empty() || *top == -std::numeric_limits<float>::infinity()) return p;
  if (law.temperature == 0) {
    p[static_cast<std::size_t>(top - law.logits.begin())] = 1;
    return p;
  }
  long double sum = 0;
  for (const float logit : law.logits) sum += std::exp(static_cast<long double>(logit) - *top);
  for (std::size_t t = 0; t < p.size(); ++t) {
    p[t] = static_cast<double>(std::exp(static_cast<long double>(law.logits[t]) - *top) / sum);
  }
  return p;
}

}  // namespace tooldecode::test
