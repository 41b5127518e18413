/// \file
/// grow_tree: grows the dynamic draft tree of EAGLE-2 level by level under the constraint.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode::draft {

/// A node of the next level to grow.
struct FrontierNode {
  std::size_t node   = 0;  ///< index among the candidates
  std::size_t parent = 0;  ///< its parent's index in the previous level
};

/// Grows candidates from their root, or from another start: every node of a level gets its best
/// children, and the best `width` of all these children form the next level.
///
/// The head multiplies only rows that a node's mask allows, and log-probabilities are normalised
/// over these rows. Forbidden tokens take no probability from allowed ones.
///
/// \param depth            levels
/// \param min_probability  of a path that is extended
/// \param children         children(level) returns how many children a node of that level gets
/// \param states_of        states_of(level, frontier) returns the hidden states [n, H] whose logits
///                         are those of the frontier's children; with fewer rows than nodes, growth
///                         ends after that many nodes
/// \par Complexity  `depth` products of at most `width` states with the head
/// \par Threads     as states_of
/// \par Source      Li et al., EAGLE-2, arXiv:2406.16858, section 4.1
template <ConstraintPolicy C, DraftHead H, class Children, class StatesOf>
void grow_tree(DraftCandidates<C>& candidates, const H& head, std::size_t depth, std::size_t width,
               double min_probability, Children children, StatesOf states_of,
               std::size_t start = 0) {
  const C& constraint = candidates.constraint();
  const auto min      = static_cast<float>(std::log(min_probability));
  std::vector<FrontierNode> frontier{{.node = start}};
  for (std::size_t level = 0; level < depth && !frontier.empty(); ++level) {
    const std::span<const float> states = states_of(level, std::span<const FrontierNode>(frontier));
    frontier.resize(std::min(frontier.size(), states.size() / head.hidden_size()));
    std::vector<TokenMask> allowed(frontier.size(), TokenMask(constraint.vocabulary_size()));
    std::vector<ConstMaskView> masks;
    for (std::size_t i = 0; i < frontier.size(); ++i) {
      if (!within_limits([&] {
            constraint.fill_mask(candidates.state(frontier[i].node), allowed[i].words());
          })) {
        allowed[i].words().clear();
      }
      masks.push_back(std::as_const(allowed[i]).words());
    }
    const auto best = head.project_topk(states, children(level), masks);
    std::vector<FrontierNode> grown;
    for (std::size_t i = 0; i < frontier.size(); ++i) {
      for (std::size_t t = 0; t < best[i].tokens.size(); ++t) {
        const auto child =
            candidates.add(frontier[i].node, best[i].tokens[t].token, best[i].log_probability(t));
        if (child) grown.push_back({*child, i});
      }
    }
    std::sort(grown.begin(), grown.end(), [&](const FrontierNode& a, const FrontierNode& b) {
      const float first = candidates.score(a.node), second = candidates.score(b.node);
      return first > second || (first == second && a.node < b.node);
    });
    if (grown.size() > width) grown.resize(width);
    while (!grown.empty() && candidates.score(grown.back().node) < min) grown.pop_back();
    frontier = std::move(grown);
  }
}

}  // namespace tooldecode::draft
