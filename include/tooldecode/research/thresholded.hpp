/// \file
/// Thresholded: the acceptance rule with two thresholds that trades accuracy for speed; changes the
/// distribution.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

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

}  // namespace tooldecode
