/// \file
/// RecursiveRejection: the acceptance rule for siblings drawn without replacement.
#pragma once

#include <cstddef>
#include <optional>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/research/rejection.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

/// Tries a node's children in the order of their draws, each against what those before it left.
///
/// The distribution is kept if the children were drawn without replacement from
/// `tree.proposal(node)`, added in that order, and none was dropped or added for its value: how
/// many children a node has may depend on its path and its proposal, not on what was drawn for it.
///
/// \par Complexity  as choose_by_rejection
/// \par Threads     immutable
/// \par Errors      none; a child without a proposal is a broken precondition
/// \par Source      Jeon et al., Recursive Speculative Decoding, arXiv:2402.14160, section 3
struct RecursiveRejection {
  static constexpr bool is_lossless                 = true;
  static constexpr bool needs_proposal_distribution = true;

  /// The token after a node; nothing where the distribution allows none.
  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree& tree, std::size_t node,
                                              Noise& noise) const {
    return verify::choose_by_rejection(distribution, tree.children(node), tree.proposal(node),
                                       noise);
  }
};

}  // namespace tooldecode
