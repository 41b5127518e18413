/// \file
/// Chooses a token from its distribution: greedy, or with Gumbel noise of its position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Selects the noise of a sample: the same key gives every token the same noise, in whatever order
/// positions are visited.
struct NoiseKey {
  std::uint64_t seed     = 0;
  std::uint64_t position = 0;  ///< of the sampled token in the whole sequence, prompt included
};

/// A token and its log-probability.
struct LikelyToken {
  TokenId token          = 0;
  double log_probability = 0;

  friend bool operator==(const LikelyToken&, const LikelyToken&) = default;
};

/// The most likely tokens of softmax(distribution), by logit descending, then by id ascending;
/// fewer if fewer have a logit above -infinity.
///
/// \par Shapes      distribution [V], finite or -infinity
/// \par Complexity  O(V log count)
[[nodiscard]] std::vector<LikelyToken> find_likeliest(std::span<const float> distribution,
                                                      std::size_t count);

/// The token with the greatest logit, the lowest id among equals; empty if all are -infinity.
///
/// \par Shapes      distribution [V], finite or -infinity
/// \par Complexity  O(V), no allocation
[[nodiscard]] std::optional<TokenId> find_greedy(std::span<const float> distribution) noexcept;

/// Samples a token from softmax(distribution): the greatest logit plus Gumbel noise, the lowest id
/// among equals; empty if all logits are -infinity.
///
/// The noise of a token depends on (seed, position, token id), not on the allowed tokens or the
/// number of rows. So a verifier that samples at every node of a draft tree gets the tokens of a
/// sequential run.
///
/// \par Shapes      distribution [V], finite or -infinity
/// \par Complexity  O(V), no allocation; noise only for tokens that can still win
/// \par Source      Maddison et al., A* sampling, arXiv:1411.0030, section 2
[[nodiscard]] std::optional<TokenId> find_gumbel(std::span<const float> distribution,
                                                 NoiseKey key) noexcept;

/// Chooses from a distribution: greedy at temperature 0, else with the position's Gumbel noise.
[[nodiscard]] std::optional<TokenId> find_token(std::span<const float> distribution,
                                                float temperature, NoiseKey key) noexcept;

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/logits/selection.ipp>
#endif
