/// \file
/// DraftCandidates: guesses of any number, of which the most probable become a draft tree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>

namespace tooldecode {

/// A tree of guessed tokens below the last emitted one, pruned by the constraint as it grows.
///
/// Several drafters may add to one; what two of them guess is one node, with the higher of their
/// probabilities. A token that the constraint forbids is not added, so that no node of the tree
/// that is verified is wasted on it, and neither is one after which nothing but the end can follow,
/// for such a token is chosen at its parent. `best` takes the nodes of the highest scores, where a
/// node's score is the sum of the logarithms along its path: a parent's is never below its
/// children's, and ties go to the node added first, so that no node is without its parent.
///
/// \par Complexity  add O(siblings) and one `advance`; best O(n log n)
/// \par Threads     a value; refers to the constraint
/// \par Source      Li et al., EAGLE-2, arXiv:2406.16858, section 4.2
template <ConstraintPolicy C>
class DraftCandidates {
 public:
  using State = typename C::State;

  /// \param state       of the constraint after the root's token
  /// \param root        the last emitted token
  /// \param max_depth  deeper nodes are not added
  DraftCandidates(const C& constraint, State state, TokenId root, std::size_t max_depth)
      : constraint_(&constraint), max_depth_(max_depth) {
    nodes_.push_back({.token = root, .state = state});
  }

  [[nodiscard]] const C& constraint() const noexcept { return *constraint_; }
  /// Nodes, the root included.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] TokenId token(std::size_t node) const noexcept { return nodes_[node].token; }
  [[nodiscard]] std::size_t parent(std::size_t node) const noexcept { return nodes_[node].parent; }
  [[nodiscard]] std::size_t depth(std::size_t node) const noexcept { return nodes_[node].depth; }
  [[nodiscard]] State state(std::size_t node) const noexcept { return nodes_[node].state; }
  [[nodiscard]] bool is_leaf(std::size_t node) const noexcept {
    return nodes_[node].first_child == none;
  }
  /// The logarithm of the probability of a node's path, added up from the root.
  [[nodiscard]] float score(std::size_t node) const noexcept {
    return node == 0 ? 0 : score(nodes_[node].parent) + nodes_[node].log_probability;
  }

  /// Adds a child, or finds it; nothing where it may not or need not be drafted.
  ///
  /// \param log_probability  of the token after its parent; what is no such thing counts as 0 or
  ///                         as hardly possible
  std::optional<std::size_t> add(std::size_t parent, TokenId token, float log_probability) {
    constexpr float min = -1e6F;  // sums of them are still finite, and so in order
    const float likely  = log_probability > min ? std::min(log_probability, 0.0F) : min;
    for (std::size_t child = nodes_[parent].first_child; child != none;
         child             = nodes_[child].next_sibling) {
      if (nodes_[child].token == token) {
        nodes_[child].log_probability = std::max(nodes_[child].log_probability, likely);
        return child;
      }
    }
    if (nodes_[parent].depth >= max_depth_) return std::nullopt;
    const auto state = constraint_->advance(nodes_[parent].state, token);
    if (!state || constraint_->is_finished(*state)) return std::nullopt;
    nodes_.push_back({.token           = token,
                      .state           = *state,
                      .log_probability = likely,
                      .parent          = parent,
                      .depth           = nodes_[parent].depth + 1,
                      .next_sibling    = nodes_[parent].first_child});
    nodes_[parent].first_child = size() - 1;
    return size() - 1;
  }

  /// The nodes, at most so many and the root among them, that `best` takes, ascending.
  [[nodiscard]] std::vector<std::size_t> best_nodes(std::size_t count,
                                                    double min_probability = 0) const {
    struct Ranked {
      float score;
      std::size_t node;
    };
    std::vector<Ranked> ranked{{0, 0}};
    for (std::size_t i = 1; i < size(); ++i) {
      ranked.push_back({ranked[nodes_[i].parent].score + nodes_[i].log_probability, i});
    }
    std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
      return a.score > b.score || (a.score == b.score && a.node < b.node);
    });
    std::vector<std::size_t> chosen;
    const auto min = static_cast<float>(std::log(min_probability));
    for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) {
      if (ranked[i].score >= min) chosen.push_back(ranked[i].node);
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  /// The tree of the most probable nodes.
  ///
  /// \param count              nodes, the root included; from 1 to 64
  /// \param min_probability  of a node's path; what is less likely costs more than it is worth
  [[nodiscard]] DraftTree best(std::size_t count, double min_probability = 0) const {
    TOOLDECODE_ASSERT(count >= 1 && count <= DraftTree::max_nodes);
    DraftTree tree(token(0));
    std::vector<std::size_t> places(size());  // in the tree, of nodes that are in it
    for (const std::size_t node : best_nodes(count, min_probability)) {
      if (node != 0) places[node] = tree.add(places[parent(node)], token(node), score(node));
    }
    return tree;
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  struct Node {
    TokenId token            = 0;
    State state              = {};
    float log_probability    = 0;
    std::size_t parent       = 0;
    std::size_t depth        = 0;
    std::size_t first_child  = none;
    std::size_t next_sibling = none;
  };

  const C* constraint_;
  std::size_t max_depth_;
  std::vector<Node> nodes_;
};

}  // namespace tooldecode
