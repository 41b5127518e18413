/// \file
/// TargetDistribution: the distribution that the next token must have, as a row of processed
/// logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode::verify {

/// A row that a LogitsPipeline made, and how tokens are drawn from it: softmax of the logits, or,
/// at temperature 0, the greatest of them alone.
///
/// \par Shapes      logits [V], finite or -infinity; probabilities [V]
/// \par Complexity  O(V), no allocation; sums in double
/// \par Threads     a view
/// \par Errors      none; a token outside the row has probability 0
struct TargetDistribution {
  std::span<const float> logits;  ///< [V], already divided by the temperature
  float temperature;              ///< 0 means greedy; else it was applied and only says so

  [[nodiscard]] double probability(TokenId token) const noexcept {
    const auto t    = static_cast<std::size_t>(token);
    const float top = greatest(logits);
    if (t >= logits.size() || logits[t] == none) return 0;
    if (temperature == 0) return find_greedy(logits) == token ? 1 : 0;
    double sum = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) sum += weight(i, top);
    return weight(t, top) / sum;
  }

  /// Writes all probabilities.
  ///
  /// \return false where no token is possible; they are then all 0
  bool fill_probabilities(std::span<double> probabilities) const noexcept {
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

 private:
  static constexpr float none = -std::numeric_limits<float>::infinity();

  // Of a token whose probability is the share of its weight in the sum of all.
  [[nodiscard]] double weight(std::size_t t, float top) const noexcept {
    return logits[t] == none ? 0
                             : std::exp(static_cast<double>(logits[t]) - static_cast<double>(top));
  }
};

}  // namespace tooldecode::verify
