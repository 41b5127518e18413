/// \file
/// PositionNoise: the random choices that a rule makes at one position.
#pragma once

#include <optional>
#include <span>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode::verify {

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

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/verify/position_noise.ipp>
#endif
