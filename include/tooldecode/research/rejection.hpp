/// \file
/// Rejection sampling against the distribution that draft tokens were sampled from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode::verify {

/// Chooses among drafts that were sampled one after another, without replacement, from a proposal
/// q.
///
/// Each draft is accepted with probability p / q. A rejected draft replaces p by (p - q)+ and
/// removes itself from q; both are renormalised. If no draft is accepted, samples from the
/// remaining p.
///
/// A token that p forbids is never chosen. A draft outside q violates the precondition; without
/// assertions all drafts are then ignored and the token is sampled from p, which is correct for any
/// drafts. If only rounding errors remain of p, the token is also sampled from the original p.
///
/// \param drafts  in sampling order
///
/// \par Shapes      distribution [V]; proposal and drafts of any length
/// \par Complexity  O(V) for each rejected draft, and O(V) memory
/// \par Threads     pure, except for the noise
/// \par Source      Leviathan et al., arXiv:2211.17192, section 2.3; Chen et al., arXiv:2302.01318;
///                  without replacement: Jeon et al., Recursive Speculative Decoding,
///                  arXiv:2402.14160, section 3
template <class Noise>
[[nodiscard]] std::optional<TokenId> choose_by_rejection(const TargetDistribution& distribution,
                                                         std::span<const TokenId> drafts,
                                                         ProposalDistribution proposal,
                                                         Noise& noise) {
  const auto& tokens = proposal.tokens;
  auto& q            = proposal.probabilities;
  const auto find    = [&tokens](TokenId token) {
    return static_cast<std::size_t>(std::find(tokens.begin(), tokens.end(), token) -
                                    tokens.begin());
  };
  const bool is_drawn = std::all_of(drafts.begin(), drafts.end(), [&](TokenId draft) {
    const std::size_t i = find(draft);
    return i < q.size() && q[i] > 0;
  });
  TOOLDECODE_ASSERT(is_drawn);
  std::vector<double> owed(distribution.logits.size());  // [V]
  if (drafts.empty() || !is_drawn || !distribution.fill_probabilities(owed))
    return noise.draw(distribution);

  double debt = 1;
  for (const TokenId draft : drafts) {
    const std::size_t drawn = find(draft);
    const double scale      = debt / std::accumulate(q.begin(), q.end(), 0.0);
    const auto t            = static_cast<std::size_t>(draft);
    if (noise.accept(t < owed.size() ? owed[t] / (q[drawn] * scale) : 0)) return draft;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto token = static_cast<std::size_t>(tokens[i]);
      if (token < owed.size()) owed[token] = std::max(owed[token] - q[i] * scale, 0.0);
    }
    debt = std::accumulate(owed.begin(), owed.end(), 0.0);
    if (debt == 0) return noise.draw(distribution);
    q[drawn] = 0;
  }
  return noise.draw(std::span<const double>(owed));
}

}  // namespace tooldecode::verify
