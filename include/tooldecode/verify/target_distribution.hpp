/// \file
/// TargetDistribution: the distribution of the next token, as a row of processed logits.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode::verify {

/// A row made by a LogitsPipeline, and how to sample from it: softmax of the logits, or only the
/// greatest logit at temperature 0.
///
/// \par Shapes      logits [V], finite or -infinity; probabilities [V]
/// \par Complexity  O(V), no allocation; sums in double
struct TargetDistribution {
  std::span<const float> logits;  ///< [V], already divided by the temperature
  float temperature;              ///< 0 means greedy; any other has been applied already

  /// Writes all probabilities.
  ///
  /// \return false if no token is possible; all are then 0
  bool fill_probabilities(std::span<double> probabilities) const noexcept;

 private:
  static constexpr float none = -std::numeric_limits<float>::infinity();

  // Unnormalised probability of a token.
  [[nodiscard]] double weight(std::size_t t, float top) const noexcept;
};

}  // namespace tooldecode::verify

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/verify/target_distribution.ipp>
#endif
