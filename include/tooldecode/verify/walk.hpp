/// \file
/// Walk: the acceptance rule that draws as plain decoding does and descends if a child agrees.
#pragma once

#include <cstddef>
#include <optional>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/target_law.hpp>

namespace tooldecode {

/// Draws from the target's law at a node, whatever the children are.
///
/// The law is kept for any tree that does not look at the target's noise: any pruning, ranking or
/// draft vocabulary. With noise that belongs to positions the tokens themselves are those of plain
/// decoding. A child is taken as often as the target's law holds it.
///
/// \par Complexity  one draw
/// \par Threads     immutable
/// \par Errors      none
struct Walk {
  static constexpr bool is_lossless        = true;
  static constexpr bool needs_proposal_law = false;

  /// The token after a node; nothing where the law allows none.
  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const TargetLaw& law, const DraftTree&, std::size_t,
                                              Noise& noise) const {
    return noise.draw(law);
  }
};

}  // namespace tooldecode
