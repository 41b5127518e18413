/// \file
/// DraftCandidates: any number of guesses, of which the most probable become a draft tree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>

namespace tooldecode::draft {

/// Runs `ask`, which asks a constraint about a guessed state. False if that is past the constraint's
/// limits: plain decoding may never reach the state, so the guess is given up and not the answer.
template <class Ask>
[[nodiscard]] bool within_limits(const Ask& ask) {
  try {
    ask();
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::limit_exceeded) throw;
    return false;
  }
}

/// The state after a guess; nothing if the constraint forbids the token, if only the end can follow
/// it, or if that is past the constraint's limits.
template <ConstraintPolicy C>
[[nodiscard]] std::optional<typename C::State> state_after(const C& constraint,
                                                           typename C::State state, TokenId token) {
  std::optional<typename C::State> next;
  if (!within_limits([&] { next = constraint.advance(state, token); })) return std::nullopt;
  return next && !constraint.is_finished(*next) ? next : std::nullopt;
}

}  // namespace tooldecode::draft

namespace tooldecode {

/// A tree of guessed tokens below the last emitted one, pruned by the constraint as it grows.
///
/// Several drafters may add to one tree; a token that two of them guess is one node with the higher
/// probability. A token that the constraint forbids is not added, so verification wastes no node on
/// it. A token after which only the end can follow is not added either, nor one that the constraint
/// cannot decide within its limits. `best` takes the nodes with
/// the highest scores; a node's score is the sum of the log-probabilities along its path. A
/// parent's score is never below its children's and ties go to the node added first, so every
/// chosen node has its parent.
///
/// \par Complexity  add: O(siblings) and one `advance`; best: O(n log n)
/// \par Threads     a value; refers to the constraint
/// \par Source      Li et al., EAGLE-2, arXiv:2406.16858, section 4.2
template <ConstraintPolicy C>
class DraftCandidates {
 public:
  using State = typename C::State;

  /// \param state      the constraint's state after the root's token
  /// \param root       the last emitted token
  /// \param max_depth  deeper nodes are not added
  DraftCandidates(const C& constraint, State state, TokenId root, std::size_t max_depth)
      : constraint_(&constraint), max_depth_(max_depth) {
    nodes_.push_back({.token = root, .state = state});
  }

  [[nodiscard]] const C& constraint() const noexcept { return *constraint_; }
  /// Number of nodes, the root included.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] TokenId token(std::size_t node) const noexcept { return nodes_[node].token; }
  [[nodiscard]] std::size_t parent(std::size_t node) const noexcept { return nodes_[node].parent; }
  [[nodiscard]] std::size_t depth(std::size_t node) const noexcept { return nodes_[node].depth; }
  [[nodiscard]] State state(std::size_t node) const noexcept { return nodes_[node].state; }
  [[nodiscard]] bool is_leaf(std::size_t node) const noexcept {
    return nodes_[node].first_child == none;
  }
  /// Sum of the log-probabilities from the root to the node.
  [[nodiscard]] float score(std::size_t node) const noexcept {
    return node == 0 ? 0 : score(nodes_[node].parent) + nodes_[node].log_probability;
  }

  /// Adds a child, or returns the existing one; nothing if the token must not or need not be
  /// drafted.
  ///
  /// \param log_probability  of the token after its parent; clamped to [-1e6, 0], NaN counts as
  ///                         -1e6
  std::optional<std::size_t> add(std::size_t parent, TokenId token, float log_probability) {
    const auto node = add_free(parent, token, log_probability);
    if (node) nodes_[*node].is_free = false;
    return node;
  }

  /// The same for a guess that took no pass of a draft model, such as text that is forced or copied.
  std::optional<std::size_t> add_free(std::size_t parent, TokenId token, float log_probability) {
    constexpr float min = -1e6F;  // keeps sums finite, so they can be compared
    const float likely  = log_probability > min ? std::min(log_probability, 0.0F) : min;
    for (std::size_t child = nodes_[parent].first_child; child != none;
         child             = nodes_[child].next_sibling) {
      if (nodes_[child].token == token) {
        nodes_[child].log_probability = std::max(nodes_[child].log_probability, likely);
        return child;
      }
    }
    if (nodes_[parent].depth >= max_depth_) return std::nullopt;
    const auto state = draft::state_after(*constraint_, nodes_[parent].state, token);
    if (!state) return std::nullopt;
    nodes_.push_back({.token           = token,
                      .state           = *state,
                      .log_probability = likely,
                      .parent          = parent,
                      .depth           = nodes_[parent].depth + 1,
                      .next_sibling    = nodes_[parent].first_child});
    nodes_[parent].first_child = size() - 1;
    return size() - 1;
  }

  /// How many levels have a guess that took a pass of a draft model.
  [[nodiscard]] std::size_t pass_levels() const {
    std::vector<bool> took_pass;  // by depth
    for (const Node& node : nodes_) {
      if (node.depth >= took_pass.size()) took_pass.resize(node.depth + 1);
      if (!node.is_free) took_pass[node.depth] = true;
    }
    return static_cast<std::size_t>(std::ranges::count(took_pass, true));
  }

  /// The nodes that `best` takes, at most `count`, the root included, in ascending order.
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
  /// \param count            nodes, the root included; from 1 to 64
  /// \param min_probability  of a node's path; less likely nodes are dropped
  [[nodiscard]] DraftTree best(std::size_t count, double min_probability = 0) const {
    TOOLDECODE_ASSERT(count >= 1 && count <= DraftTree::max_nodes);
    DraftTree tree(token(0));
    std::vector<std::size_t> places(size());
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
    bool is_free             = true;
  };

  const C* constraint_;
  std::size_t max_depth_;
  std::vector<Node> nodes_;
};

}  // namespace tooldecode
