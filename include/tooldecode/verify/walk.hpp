/// \file
/// Walk: the acceptance rule that draws as plain decoding does and descends if a child agrees.
#pragma once

#include <cstddef>
#include <optional>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

/// Draws from the target's distribution at a node, whatever the children are.
///
/// The distribution is kept for any tree that does not look at the target's noise: any pruning,
/// ranking or draft vocabulary. With noise that belongs to positions the tokens themselves are
/// those of plain decoding. A child is taken as often as the target's distribution holds it.
///
/// \par Complexity  one draw
/// \par Threads     immutable
/// \par Errors      none
struct Walk {
  static constexpr bool is_lossless                 = true;
  static constexpr bool needs_proposal_distribution = false;

  /// The token after a node; nothing where the distribution allows none.
  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree&, std::size_t, Noise& noise) const {
    return noise.draw(distribution);
  }
};

}  // namespace tooldecode
