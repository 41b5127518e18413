#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
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

TOOLDECODE_INLINE std::optional<TokenId> PositionNoise::draw(
    const TargetDistribution& distribution) const noexcept {
  return find_token(distribution.logits, distribution.temperature, key_);
}

TOOLDECODE_INLINE std::optional<TokenId> PositionNoise::draw(
    std::span<const double> weights) const noexcept {
  std::optional<TokenId> first;  // the first of exponential clocks with these rates to ring
  double best = 0;
  for (std::size_t group = 0; group * 4 < weights.size(); ++group) {
    const std::size_t begin = group * 4;
    const auto four  = weights.subspan(begin, std::min<std::size_t>(4, weights.size() - begin));
    const double max = *std::max_element(four.begin(), four.end());
    if (max * 0x1p33 <= best) continue;
    const auto words =
        core::noise_words(key_.seed, key_.position, static_cast<std::uint32_t>(group));
    for (std::size_t i = 0; i < four.size(); ++i) {
      // -log(u) > 1 - u, which is above the inverse of this power of 2, so few tokens need a
      // logarithm.
      const auto bound = static_cast<double>(std::uint64_t{2} << std::countl_one(words[i]));
      if (four[i] * bound <= best) continue;
      const double speed = four[i] / -std::log(core::unit_interval(words[i]));
      if (speed <= best) continue;
      best  = speed;
      first = static_cast<TokenId>(begin + i);
    }
  }
  return first;
}

TOOLDECODE_INLINE bool PositionNoise::accept(double probability) noexcept {
  return core::uniform(key_.seed, key_.position, coins_++, core::NoiseStream::coins) < probability;
}

}  // namespace tooldecode::verify
