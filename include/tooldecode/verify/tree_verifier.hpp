/// \file
/// TreeVerifier: decides which path of a draft tree becomes output.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/target_distribution.hpp>

namespace tooldecode {

/// The result of verifying a draft tree.
struct TreeVerdict {
  std::vector<std::size_t> path;  ///< accepted nodes, ascending, without the root
  std::optional<TokenId> token;   ///< the one after the path; empty if the distribution allows none
};

namespace verify {

/// Walks down a draft tree from its root while the token after a node is a child's.
///
/// \param token_after  token_after(node) returns the token after a node, or nothing
///
/// \par Complexity  at most D + 1 tokens
template <class TokenAfter>
[[nodiscard]] TreeVerdict descend(const DraftTree& tree, const TokenAfter& token_after) {
  TreeVerdict verdict;
  for (std::size_t node = 0;;) {
    verdict.token    = token_after(node);
    const auto child = verdict.token ? tree.find_child(node, *verdict.token) : std::nullopt;
    if (!child) return verdict;
    verdict.path.push_back(*child);
    node = *child;
  }
}

}  // namespace verify

/// Follows an acceptance rule from the root of a draft tree while it chooses children.
///
/// \par Shapes      a distribution [V] per visited node
/// \par Complexity  the rule's choice at each of at most D + 1 nodes; distributions of other nodes
///                  are not requested
/// \par Threads     immutable; const members may run concurrently
template <class Rule = GumbelCoupling>
class TreeVerifier {
  static_assert(diagnose::is_acceptance_rule<Rule>());

 public:
  static constexpr bool is_lossless                 = Rule::is_lossless;
  static constexpr bool needs_proposal_distribution = Rule::needs_proposal_distribution;

  explicit TreeVerifier(Rule rule) : rule_(rule) {}
  TreeVerifier() = default;

  /// The token after one node; empty if the distribution allows none.
  template <class Noise>
  [[nodiscard]] std::optional<TokenId> choose(const verify::TargetDistribution& distribution,
                                              const DraftTree& tree, std::size_t node,
                                              Noise& noise) const {
    return rule_.choose(distribution, tree, node, noise);
  }

  /// Verifies a whole tree.
  ///
  /// \param distribution_of  distribution_of(node) returns the processed logits [V] of the token
  ///                         after a node
  /// \param key              of the token after the root; d levels deeper its position is d greater
  /// \param temperature      0 for greedy choice; other temperatures are already in the logits
  template <class DistributionOf>
  [[nodiscard]] TreeVerdict operator()(const DraftTree& tree, DistributionOf distribution_of,
                                       NoiseKey key, float temperature) const {
    return verify::descend(tree, [&](std::size_t node) {
      verify::PositionNoise noise{key};
      ++key.position;
      return choose({distribution_of(node), temperature}, tree, node, noise);
    });
  }

 private:
  Rule rule_;
};

}  // namespace tooldecode
