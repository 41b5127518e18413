/// \file
/// ChainRejection: the acceptance rule of speculative sampling with one draft per position.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/research/rejection.hpp>
#include <tooldecode/verify/target_distribution.hpp>

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

}  // namespace tooldecode
