/// \file
/// GumbelCoupling: the acceptance rule that samples as plain decoding does and continues if a child agrees.
#pragma once

#include <cstddef>
#include <optional>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

/// Samples from the target's distribution at a node, whatever the children are.
///
/// The distribution is kept for any tree that does not depend on the target's noise: any pruning,
/// ranking or draft vocabulary. The noise belongs to positions, so the tokens are exactly those of
/// plain decoding. A child is accepted with its probability under the target.
///
/// \par Complexity  one draw
/// \par Threads     immutable
struct GumbelCoupling {
  static constexpr bool is_lossless                 = true;
  static constexpr bool needs_proposal_distribution = false;

  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree&, std::size_t, Noise& noise) const {
    return noise.draw(distribution);
  }
};

/// The name of version 0.2; it goes in 0.4.
using Walk [[deprecated("use GumbelCoupling")]] = GumbelCoupling;

}  // namespace tooldecode
