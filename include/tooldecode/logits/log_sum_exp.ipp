#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include <tooldecode/logits/log_sum_exp.hpp>

namespace tooldecode {

TOOLDECODE_INLINE float greatest(std::span<const float> logits) noexcept {
  constexpr std::size_t width = 32;
  constexpr float none        = -std::numeric_limits<float>::infinity();
  std::array<float, width> tops;  // independent lanes, which the compiler vectorises
  tops.fill(none);
  std::size_t t = 0;
  for (; t + width <= logits.size(); t += width) {
    for (std::size_t i = 0; i < width; ++i) {
      tops[i] = logits[t + i] > tops[i] ? logits[t + i] : tops[i];
    }
  }
  for (; t < logits.size(); ++t) tops[0] = logits[t] > tops[0] ? logits[t] : tops[0];
  float top = none;
  for (const float x : tops) top = x > top ? x : top;
  return top;
}

TOOLDECODE_INLINE double log_sum_exp(std::span<const float> logits) noexcept {
  constexpr std::size_t width = 32;
  constexpr float none        = -std::numeric_limits<float>::infinity();
  const float top             = greatest(logits);
  if (top == none) return static_cast<double>(none);
  double sum = 0;
  for (std::size_t t = 0; t < logits.size(); t += width) {
    const auto part = logits.subspan(t, std::min(width, logits.size() - t));
    if (greatest(part) == none) continue;  // masked rows are mostly empty
    for (const float logit : part) {
      if (logit != none) sum += std::exp(static_cast<double>(logit) - static_cast<double>(top));
    }
  }
  return static_cast<double>(top) + std::log(sum);
}

}  // namespace tooldecode
