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
/// \par Errors      none; a token outside the row has probability 0
struct TargetDistribution {
  std::span<const float> logits;  ///< [V], already divided by the temperature
  float temperature;              ///< 0 means greedy; else it was applied and only says so

  [[nodiscard]] double probability(TokenId token) const noexcept;

  /// Writes all probabilities.
  ///
  /// \return false where no token is possible; they are then all 0
  bool fill_probabilities(std::span<double> probabilities) const noexcept;

 private:
  static constexpr float none = -std::numeric_limits<float>::infinity();

  // Of a token whose probability is the share of its weight in the sum of all.
  [[nodiscard]] double weight(std::size_t t, float top) const noexcept;
};

}  // namespace tooldecode::verify

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/verify/target_distribution.ipp>
#endif
