/// \file
/// Typical: the acceptance rule that takes any draft that is plausible to the target; changes the
/// distribution.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

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
