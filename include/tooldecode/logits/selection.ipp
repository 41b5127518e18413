/// \file
/// What selection.hpp declares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::optional<TokenId> find_greedy(std::span<const float> distribution) noexcept {
  const float top = greatest(distribution);
  if (top == -std::numeric_limits<float>::infinity()) return std::nullopt;
  return static_cast<TokenId>(std::find(distribution.begin(), distribution.end(), top) -
                              distribution.begin());
}

TOOLDECODE_INLINE std::optional<TokenId> find_gumbel(std::span<const float> distribution,
                                                     NoiseKey key) noexcept {
  constexpr double greatest_noise = 22.88;  // gumbel(2^32 - 1) is 22.8739
  constexpr double none           = -std::numeric_limits<double>::infinity();
  std::optional<TokenId> best;
  double best_score = none;
  for (std::size_t group = 0; group * 4 < distribution.size(); ++group) {
    const std::size_t begin = group * 4;
    const std::size_t end   = begin + 4 < distribution.size() ? begin + 4 : distribution.size();
    bool can_win            = false;
    for (std::size_t t = begin; t < end; ++t) {
      can_win |= static_cast<double>(distribution[t]) + greatest_noise > best_score;
    }
    if (!can_win) continue;
    const auto words = core::noise_words(key.seed, key.position, static_cast<std::uint32_t>(group));
    for (std::size_t t = begin; t < end; ++t) {
      const auto logit = static_cast<double>(distribution[t]);
      if (logit == none || logit + core::gumbel_bound(words[t - begin]) <= best_score) continue;
      const double score = logit + core::gumbel(words[t - begin]);
      if (score > best_score) {
        best_score = score;
        best       = static_cast<TokenId>(t);
      }
    }
  }
  return best;
}

TOOLDECODE_INLINE std::optional<TokenId> find_token(std::span<const float> distribution,
                                                    float temperature, NoiseKey key) noexcept {
  return temperature == 0 ? find_greedy(distribution) : find_gumbel(distribution, key);
}

}  // namespace tooldecode
