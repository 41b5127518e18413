#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include <tooldecode/draft/draft_tree.hpp>

namespace tooldecode {

TOOLDECODE_INLINE DraftTree::DraftTree(TokenId root) {
  push(root, 0, 1, 0);
}

TOOLDECODE_INLINE std::span<const std::uint64_t> DraftTree::ancestors() const noexcept {
  return ancestors_;
}

TOOLDECODE_INLINE std::size_t DraftTree::depth(std::size_t node) const noexcept {
  return static_cast<std::size_t>(std::popcount(ancestors_[node])) - 1;
}

TOOLDECODE_INLINE std::size_t DraftTree::add(std::size_t parent, TokenId token, float score) {
  TOOLDECODE_ASSERT(size() < max_nodes && parent < size() && !find_child(parent, token));
  push(token, parent, ancestors_[parent] | std::uint64_t{1} << size(), score);
  return size() - 1;
}

TOOLDECODE_INLINE std::optional<std::size_t> DraftTree::find_child(std::size_t node,
                                                                   TokenId token) const noexcept {
  for (std::size_t i = node + 1; i < size(); ++i) {
    if (parents_[i] == node && tokens_[i] == token) return i;
  }
  return std::nullopt;
}

TOOLDECODE_INLINE bool DraftTree::is_leaf(std::size_t node) const noexcept {
  return std::find(parents_.begin() + static_cast<std::ptrdiff_t>(node) + 1, parents_.end(),
                   node) == parents_.end();
}

TOOLDECODE_INLINE std::vector<TokenId> DraftTree::children(std::size_t node) const {
  std::vector<TokenId> tokens;
  for (std::size_t i = node + 1; i < size(); ++i) {
    if (parents_[i] == node) tokens.push_back(tokens_[i]);
  }
  return tokens;
}

TOOLDECODE_INLINE void DraftTree::set_proposal(std::size_t node,
                                               ProposalDistribution distribution) {
  TOOLDECODE_ASSERT(node < size() &&
                    distribution.tokens.size() == distribution.probabilities.size());
  if (proposals_.size() <= node) proposals_.resize(node + 1);
  proposals_[node] = std::move(distribution);
}

TOOLDECODE_INLINE const ProposalDistribution& DraftTree::proposal(std::size_t node) const noexcept {
  static const ProposalDistribution none;
  return node < proposals_.size() ? proposals_[node] : none;
}

TOOLDECODE_INLINE void DraftTree::push(TokenId token, std::size_t parent, std::uint64_t ancestors,
                                       float score) {
  tokens_.push_back(token);
  parents_.push_back(parent);
  ancestors_.push_back(ancestors);
  scores_.push_back(score);
}

}  // namespace tooldecode
