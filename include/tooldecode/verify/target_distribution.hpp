/// \file
/// TargetDistribution: the distribution of the next token. PositionNoise: the choices that a rule makes from it.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>

#include <tooldecode/core/types.hpp>
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

/// Samples and coins for the token at one absolute position; a rule draws at most once there.
///
/// A draw from the target's distribution equals that of plain decoding. Each coin is a separate
/// number, from a stream that no draw reads.
///
/// \par Shapes      weights [V]
/// \par Complexity  a draw O(V), a coin O(1); no allocation
/// \par Source      Maddison et al., A* sampling, arXiv:1411.0030, section 2
class PositionNoise {
 public:
  explicit PositionNoise(NoiseKey key) noexcept : key_(key) {}

  /// A token of the distribution; empty if none is possible.
  [[nodiscard]] std::optional<TokenId> draw(const TargetDistribution& distribution) const noexcept;

  /// A token with probability proportional to its weight; empty if no weight is positive.
  [[nodiscard]] std::optional<TokenId> draw(std::span<const double> weights) const noexcept;

  /// Tosses the next coin: true with this probability, never at 0 or less, always at 1 or more.
  [[nodiscard]] bool accept(double probability) noexcept;

 private:
  NoiseKey key_;
  TokenId coins_ = 0;
};

}  // namespace tooldecode::verify

namespace tooldecode {

/// What an AcceptanceRule receives.
using verify::PositionNoise;
/// What an AcceptanceRule chooses from.
using verify::TargetDistribution;

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/verify/target_distribution.ipp>
#endif
