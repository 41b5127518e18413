/// \file
/// Acceptance rules besides the usual one: ChainRejection, RecursiveRejection, Thresholded, Typical.
#pragma once

#include <algorithm>
#include <cmath>
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
/// A token that p forbids is never chosen. A draft outside q, or one that is there twice, violates
/// the precondition; without assertions all drafts are then ignored and the token is sampled from p,
/// which is correct for any drafts. If only rounding errors remain of p, the token is also sampled
/// from the original p.
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
    return i < q.size() && q[i] > 0 && std::count(drafts.begin(), drafts.end(), draft) == 1;
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

namespace tooldecode {

/// Accepts a node's first child x with probability p(x) / q(x), else samples from (p - q)+. Samples
/// from p if there is no child.
///
/// The distribution is kept if the first child was sampled from `tree.proposal(node)`. Its
/// acceptance is then the best that any rule reaches for one draft: the sum of min(p, q). Other
/// children are visited only if the sample equals them.
///
/// \par Complexity  as choose_by_rejection
/// \par Threads     immutable
/// \par Errors      none; a child without a proposal violates the precondition
/// \par Source      Leviathan et al., arXiv:2211.17192; Chen et al., arXiv:2302.01318
struct ChainRejection {
  static constexpr bool is_lossless                 = true;
  static constexpr bool needs_proposal_distribution = true;

  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree& tree, std::size_t node,
                                              Noise& noise) const {
    const std::vector<TokenId> drafts = tree.children(node);
    return verify::choose_by_rejection(distribution,
                                       {drafts.data(), std::min<std::size_t>(drafts.size(), 1)},
                                       tree.proposal(node), noise);
  }
};

/// Tries a node's children in sampling order, each against the distribution that its predecessors
/// left.
///
/// The distribution is kept if the children were sampled without replacement from
/// `tree.proposal(node)`, added in that order, and none was dropped or added because of its value.
/// How many children a node has may depend on its path and its proposal, not on its samples.
///
/// \par Complexity  as choose_by_rejection
/// \par Threads     immutable
/// \par Errors      none; a child without a proposal violates the precondition
/// \par Source      Jeon et al., Recursive Speculative Decoding, arXiv:2402.14160, section 3
struct RecursiveRejection {
  static constexpr bool is_lossless                 = true;
  static constexpr bool needs_proposal_distribution = true;

  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree& tree, std::size_t node,
                                              Noise& noise) const {
    return verify::choose_by_rejection(distribution, tree.children(node), tree.proposal(node),
                                       noise);
  }
};

/// Accepts a child x if p(x) reaches `threshold_single`. Else it is accepted with a coin toss, as
/// if the total mass of the distribution were `threshold_accumulated`. If no child is accepted,
/// samples from p without the children.
///
/// **The output does not have the target's distribution** unless both thresholds are 1, which is
/// GumbelCoupling in distribution: below 1, children are accepted more often than the target would
/// choose them.
///
/// \par Complexity  O(V) time and memory
/// \par Threads     immutable
/// \par Source      SGLang, options speculative_accept_threshold_single and _acc
struct Thresholded {
  static constexpr bool is_lossless                 = false;
  static constexpr bool needs_proposal_distribution = false;

  double threshold_single      = 1;  ///< a child at least this likely is accepted, in (0, 1]
  double threshold_accumulated = 1;  ///< children with this mass are never all rejected, in (0, 1]

  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree& tree, std::size_t node,
                                              Noise& noise) const {
    const std::vector<TokenId> children = tree.children(node);
    std::vector<double> rest(distribution.logits.size());  // [V]
    if (children.empty() || !distribution.fill_probabilities(rest)) return noise.draw(distribution);
    double left = threshold_accumulated;
    for (const TokenId child : children) {
      const auto t   = static_cast<std::size_t>(child);
      const double p = t < rest.size() ? rest[t] : 0;
      if (p == 0) continue;
      if (p >= threshold_single || noise.accept(left > 0 ? p / left : 1)) return child;
      left -= p;
      rest[t] = 0;
    }
    const bool is_empty = std::all_of(rest.begin(), rest.end(), [](double p) { return p == 0; });
    return is_empty ? noise.draw(distribution) : noise.draw(std::span<const double>(rest));
  }
};

/// Accepts the first child x with p(x) > min(epsilon, delta exp(-H(p))), where H is the entropy of
/// p; samples from p if there is none.
///
/// **The output does not have the target's distribution**: a plausible draft is always taken, not
/// as often as the target would, so the output leans towards the drafter. At temperature 0 the
/// output is the greedy one for epsilon and delta below 1.
///
/// \par Complexity  O(V) time and memory
/// \par Threads     immutable
/// \par Source      Cai et al., Medusa, arXiv:2401.10774, section 2.3.1
struct Typical {
  static constexpr bool is_lossless                 = false;
  static constexpr bool needs_proposal_distribution = false;

  double epsilon = 0.3;   ///< a probability that is always enough, in [0, 1)
  double delta   = 0.09;  ///< factor of exp(-H), which is 1 / n for n equally likely tokens

  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree& tree, std::size_t node,
                                              Noise& noise) const {
    const std::vector<TokenId> children = tree.children(node);
    std::vector<double> p(distribution.logits.size());  // [V]
    if (children.empty() || !distribution.fill_probabilities(p)) return noise.draw(distribution);
    // log(p) of a token is that of the most likely token plus the difference of their logits.
    const auto likeliest = std::max_element(p.begin(), p.end());
    const auto top =
        static_cast<double>(distribution.logits[static_cast<std::size_t>(likeliest - p.begin())]);
    double entropy = -std::log(*likeliest);
    for (std::size_t t = 0; t < p.size(); ++t) {
      if (p[t] > 0) entropy -= p[t] * (static_cast<double>(distribution.logits[t]) - top);
    }
    const double enough = std::min(epsilon, delta * std::exp(-entropy));
    for (const TokenId child : children) {
      const auto t = static_cast<std::size_t>(child);
      if (t < p.size() && p[t] > enough) return child;
    }
    return noise.draw(distribution);
  }
};

}  // namespace tooldecode
