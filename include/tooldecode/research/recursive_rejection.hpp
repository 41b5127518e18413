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

}  // namespace tooldecode
