/// \file
/// DraftTree: guessed tokens as a tree of up to 64 nodes that one pass of the target verifies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// A distribution over a few tokens, from which a drafter sampled the children of a node.
struct ProposalDistribution {
  std::vector<TokenId> tokens;        ///< distinct
  std::vector<double> probabilities;  ///< sum to 1
};

/// A tree of draft tokens below the last emitted one, in the layout that tree attention reads.
///
/// Node 0 is the last emitted token. A parent's index is less than its children's. Siblings hold
/// different tokens and keep the order in which they were added. `ancestors[i] = ancestors[parent]
/// | 1 << i`, so a node's depth is the number of its ancestors without itself. A score is the
/// natural logarithm of the probability that the drafter gives to the path from the root.
///
/// A drafter that samples children from a known distribution must pass it to `set_proposal`; rules
/// that compare the target's distribution with the draft's read it there.
///
/// \par Shapes      tokens [N], ancestors [N], 1 <= N <= 64
/// \par Complexity  find_child O(N), the rest O(1)
/// \par Errors      none; violated preconditions are assertions
/// \par Source      Miao et al., SpecInfer, arXiv:2305.09781, section 4; the masks are those of
///                  Zhao et al., FR-Spec, arXiv:2502.14856
class DraftTree {
 public:
  /// One bit per node in an ancestor mask.
  static constexpr std::size_t max_nodes = 64;

  explicit DraftTree(TokenId root);

  /// Number of nodes, the root included.
  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
  [[nodiscard]] std::span<const TokenId> tokens() const noexcept { return tokens_; }  // [N]
  [[nodiscard]] std::span<const std::uint64_t> ancestors() const noexcept;            // [N]
  [[nodiscard]] TokenId token(std::size_t node) const noexcept { return tokens_[node]; }
  /// The root is its own parent.
  [[nodiscard]] std::size_t parent(std::size_t node) const noexcept { return parents_[node]; }
  [[nodiscard]] std::size_t depth(std::size_t node) const noexcept;
  [[nodiscard]] float score(std::size_t node) const noexcept { return scores_[node]; }

  /// Adds a child and returns its index. No sibling may hold the token.
  std::size_t add(std::size_t parent, TokenId token, float score = 0);

  [[nodiscard]] std::optional<std::size_t> find_child(std::size_t node,
                                                      TokenId token) const noexcept;
  [[nodiscard]] bool is_leaf(std::size_t node) const noexcept;
  /// The tokens of a node's children, in the order in which they were added.
  [[nodiscard]] std::vector<TokenId> children(std::size_t node) const;

  /// States that the children of a node are sampled from this distribution, one after another and
  /// without replacement.
  void set_proposal(std::size_t node, ProposalDistribution distribution);
  /// The distribution that a node's children were sampled from; empty if there is none.
  [[nodiscard]] const ProposalDistribution& proposal(std::size_t node) const noexcept;

 private:
  void push(TokenId token, std::size_t parent, std::uint64_t ancestors, float score);

  std::vector<TokenId> tokens_;
  std::vector<std::size_t> parents_;
  std::vector<std::uint64_t> ancestors_;
  std::vector<float> scores_;
  std::vector<ProposalDistribution> proposals_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/draft_tree.ipp>
#endif
