/// \file
/// Choice of a token from its distribution: greedy, or by Gumbel noise that belongs to its
/// position.
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

namespace tooldecode {

/// Where a draw takes its noise from: the same key gives every token the same noise, in whatever
/// order positions are visited.
struct NoiseKey {
  std::uint64_t seed     = 0;  ///< of the run
  std::uint64_t position = 0;  ///< of the drawn token in the whole sequence, prompt included
};

/// The token of the greatest logit, the lowest id among equals; nothing where all are -infinity.
///
/// \par Shapes      distribution [V], finite or -infinity
/// \par Complexity  O(V), no allocation
/// \par Threads     pure
/// \par Errors      none
[[nodiscard]] inline std::optional<TokenId> find_greedy(
    std::span<const float> distribution) noexcept {
  const float top = greatest(distribution);
  if (top == -std::numeric_limits<float>::infinity()) return std::nullopt;
  return static_cast<TokenId>(std::find(distribution.begin(), distribution.end(), top) -
                              distribution.begin());
}

/// Draws a token from softmax(distribution): the greatest logit plus Gumbel noise, the lowest id
/// among equals; nothing where all logits are -infinity.
///
/// The noise of a token depends on (seed, position, token id) and not on which tokens are allowed
/// or how many rows are drawn, so that a verifier that draws at every node of a draft tree gets
/// what a sequential run gets.
///
/// \par Shapes      distribution [V], finite or -infinity
/// \par Complexity  O(V), no allocation; noise only for tokens that can still win
/// \par Threads     pure
/// \par Errors      none
/// \par Source      Maddison et al., A* sampling, arXiv:1411.0030, section 2
[[nodiscard]] inline std::optional<TokenId> find_gumbel(std::span<const float> distribution,
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

/// Chooses from a distribution: greedy at temperature 0, else by the position's Gumbel noise.
[[nodiscard]] inline std::optional<TokenId> find_token(std::span<const float> distribution,
                                                       float temperature, NoiseKey key) noexcept {
  return temperature == 0 ? find_greedy(distribution) : find_gumbel(distribution, key);
}

}  // namespace tooldecode
