/// \file
/// SizedDrafter: drafts only as deep, and verifies only as many guesses, as pays off.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/tree_costs.hpp>

namespace tooldecode {

/// Wraps a drafter. It drafts only where guesses pay off, extends each path only while it is likely
/// enough, and chooses how many guesses a pass verifies. It decides from the cost of passes and the
/// measured acceptance of such guesses.
///
/// It affects only the speed, never the tokens. Copies learn together, and so do all drafters that
/// share one estimate.
///
/// \par Complexity  as the drafter, plus O(nodes log nodes)
/// \par Threads     const members may run concurrently
/// \par Errors      those of the drafter
template <class D>
class SizedDrafter {
 public:
  static constexpr bool reads_hidden = D::reads_hidden;

  struct Request {
    typename D::Request inner;
    std::optional<DraftTree> last;  // tree of the previous round
    std::size_t length  = 0;        // prompt and answer when `last` was made
    double spent        = 0;        // seconds of this round's drafting
    std::size_t rounds  = 0;
    bool rested         = false;  // no model drafted in this round, so it has to catch up later
    bool explores       = false;  // this round does
    bool caught_up      = false;  // so the time of this round is not that of levels
    bool ignores_passes = false;  // the drafter drafts with a model although it should not
  };

  /// \param costs   of the target's passes on this machine
  /// \param learnt  estimate to share and update; not null
  SizedDrafter(D drafter, TreeCosts costs,
               std::shared_ptr<draft::AcceptanceEstimate> learnt =
                   std::make_shared<draft::AcceptanceEstimate>())
      : drafter_(std::move(drafter)), costs_(costs), learnt_(std::move(learnt)) {}

  [[nodiscard]] std::size_t budget() const noexcept { return drafter_.budget(); }
  [[nodiscard]] double min_probability() const noexcept { return drafter_.min_probability(); }
  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    return {drafter_.begin(prompt), std::nullopt};
  }
  [[nodiscard]] const draft::AcceptanceEstimate& acceptance() const noexcept { return *learnt_; }

  template <ConstraintPolicy C>
    requires CandidateDrafter<D, C>
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    learn(request, context);
    DraftContext<C> narrowed = context;
    // In a round in which the model reads the whole prompt or what it has missed, its time is not
    // that of its levels. The next round explores, and verifies what it drafts.
    request.explores  = request.rounds % often == 0 || (request.explores && request.caught_up);
    request.caught_up = request.rounds++ == 0 || request.rested;
    narrow(request, narrowed);
    if (request.explores) {
      narrowed.max_depth  = std::min(context.max_depth, std::max(narrowed.max_depth, explored));
      narrowed.max_passes = std::min(context.max_passes, std::max(narrowed.max_passes, explored));
    }
    const auto start = std::chrono::steady_clock::now();
    drafter_.propose(request.inner, narrowed, candidates);
    const auto took = std::chrono::steady_clock::now() - start;
    request.spent   = request.caught_up ? 0 : std::chrono::duration<double>(took).count();
    request.rested  = narrowed.max_passes == 0 || narrowed.max_depth == 0;
    // Levels that are forced or copied cost almost nothing, however many they are.
    const std::size_t levels = candidates.pass_levels();
    if (levels > 0 && !request.caught_up) learnt_->count_time(levels, took);
    if (levels > 0 && narrowed.max_passes == 0) request.ignores_passes = true;
  }

  template <ConstraintPolicy C>
  [[nodiscard]] DraftTree select(Request& request, const DraftContext<C>& context,
                                 const DraftCandidates<C>& candidates) const {
    const std::size_t most = std::min(budget() + 1, context.max_nodes);
    // Parents come before their children, because a node's score is never above its parent's.
    std::vector<std::pair<float, double>> ranked;  // score; probability that it is accepted
    std::vector<double> path(candidates.size(), 1.0);
    std::vector<float> scores(candidates.size(), 0.0F);
    const auto min = static_cast<float>(std::log(min_probability()));
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      const std::size_t parent = candidates.parent(i);
      scores[i]                = candidates.score(i);
      path[i] = path[parent] * learnt_->of_guess(std::exp(static_cast<double>(scores[i]) -
                                                          static_cast<double>(scores[parent])));
      if (scores[i] >= min) ranked.emplace_back(scores[i], path[i]);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<double> acceptance;
    for (const auto& one : ranked) acceptance.push_back(one.second);
    acceptance.resize(std::min(acceptance.size(), most - 1));
    std::size_t count = costs_.best_size(acceptance, context.unread, request.spent);
    if (request.explores && !request.caught_up)
      count = std::max(count, std::min(explored, acceptance.size()));
    DraftTree tree = candidates.best(count + 1, min_probability());
    request.last   = tree;
    request.length = context.length();
    return tree;
  }

 private:
  // Every `often` rounds, drafts at least `explored` levels and guesses, to notice improvements.
  static constexpr std::size_t often    = 16;
  static constexpr std::size_t explored = 2;

  // Follows the last tree along the tokens emitted since.
  template <ConstraintPolicy C>
  void learn(Request& request, const DraftContext<C>& context) const {
    if (!request.last) return;
    const DraftTree& tree = *request.last;
    std::size_t node      = 0;
    for (std::size_t at = request.length; at < context.length() && !tree.is_leaf(node); ++at) {
      const TokenId token = context.token(at);
      std::size_t best    = node;  // its most likely child
      for (std::size_t i = node + 1; i < tree.size(); ++i) {
        if (tree.parent(i) != node) continue;
        if (best == node || tree.score(i) > tree.score(best)) best = i;
        const double probability =
            std::exp(static_cast<double>(tree.score(i)) - static_cast<double>(tree.score(node)));
        learnt_->count_guess(probability, tree.token(i) == token);
      }
      const auto child = tree.find_child(node, token);
      learnt_->count_level(tree.depth(node) + 1, child == best);
      if (!child) break;
      node = *child;
    }
    request.last.reset();
  }

  // Disables drafting by a model, or all, if not even the most likely guesses pay off on average;
  // else keeps the paths that pay off by their own probability.
  template <ConstraintPolicy C>
  void narrow(const Request& request, DraftContext<C>& context) const {
    std::array<double, draft::AcceptanceEstimate::levels> acceptance;
    for (std::size_t d = 0; d < acceptance.size(); ++d) {
      acceptance[d] = learnt_->of_level(d + 1);
    }
    const double level           = learnt_->seconds_of_level();
    const TreeCosts::Chain chain = costs_.best_depth(acceptance, context.unread, level);
    if (chain.levels == 0) {
      context.max_passes = 0;
      const bool pays_if_free =
          level > 0 && costs_.best_depth(acceptance, context.unread, 0).levels > 0;
      if (request.ignores_passes || !pays_if_free) context.max_depth = 0;
      return;
    }
    const double path =
        costs_.least_path(chain, learnt_->of_level(chain.levels + 1), context.unread, level);
    context.min_probability =
        std::max(context.min_probability, learnt_->probability_of(std::min(path, 1.0)));
  }

  D drafter_;
  TreeCosts costs_;
  std::shared_ptr<draft::AcceptanceEstimate> learnt_;
};

}  // namespace tooldecode
