/// \file
/// SizedHeadDrafter: drafts with only as many head rows as pay off.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/draft_candidates.hpp>
#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode::draft {

/// Sizes of a draft head, and the seconds that the product of one level takes with each.
///
/// \par Shapes      known [sizes], (rows, seconds), rows ascending
/// \par Complexity  seconds O(sizes)
/// \par Threads     immutable
/// \par Errors      Error{invalid_option} for no sizes, sizes that do not ascend, or times that are
///                  not positive and finite
class HeadCosts {
 public:
  using Measurement = std::pair<std::size_t, double>;

  explicit HeadCosts(std::vector<Measurement> known);

  /// Times the products of a head with all rows, half of them, and so on down to `least`; takes the
  /// minimum of several rounds.
  ///
  /// \param states  number of states in a level
  template <DraftHead H>
  [[nodiscard]] static HeadCosts measure(const H& head, std::size_t states = 4,
                                         std::size_t least = 512) {
    constexpr int rounds = 5;
    std::vector<float> hidden(states * head.hidden_size());
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = i % 2 == 0 ? 0.5F : -0.5F;
    std::vector<Measurement> known;
    for (std::size_t rows = head.ranked_size(); rows > 0; rows /= 2) {
      const H part = head.first(rows);
      double best  = std::numeric_limits<double>::infinity();
      for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        static_cast<void>(part.project_topk(hidden, states, {}));
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        best                                     = std::min(best, std::max(took.count(), 1e-9));
      }
      known.emplace_back(rows, best);
      if (rows < 2 * least) break;
    }
    std::ranges::reverse(known);
    return HeadCosts(std::move(known));
  }

  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }
  [[nodiscard]] std::size_t rows(std::size_t i) const noexcept { return known_[i].first; }
  /// Seconds of a product with `rows` rows, linear between two sizes and through 0 below the least.
  [[nodiscard]] double seconds(double rows) const noexcept;

 private:
  std::vector<Measurement> known_;
};

/// For each head size: how often the head would have contained the emitted tokens, how many rows
/// its levels would have multiplied, how often a contained token is accepted, and how long the rest
/// of a round takes.
///
/// A token's rank says for every size whether the head contains it, whichever size was used. Old
/// rounds lose weight, so the estimate follows changes in the text.
///
/// \par Complexity  O(sizes) for a token, O(sizes x levels) to choose
/// \par Threads     thread-safe
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, section 2 for the time of a round,
///                  table 1 for the acceptance lost with the rows
class CoverageEstimate {
 public:
  static constexpr std::size_t always = 0;  ///< the rank of a token that every size contains
  static constexpr std::size_t never  = static_cast<std::size_t>(-1);

  explicit CoverageEstimate(HeadCosts costs) : costs_(std::move(costs)), sizes_(costs_.size()) {}

  [[nodiscard]] const HeadCosts& costs() const noexcept { return costs_; }

  /// Whether a head of a size contains a token of this rank if `allowed` tokens are allowed. If
  /// those are fewer than its rows, it contains all of them.
  ///
  /// \param added  for each size, the rows that the request added to the ranked ones; or empty
  [[nodiscard]] bool has(std::size_t size, std::size_t rank, std::size_t allowed,
                         std::span<const std::size_t> added = {}) const noexcept;

  /// Counts an emitted token of this rank at a place where `allowed` tokens were allowed.
  void count_token(std::size_t rank, std::size_t allowed, std::span<const std::size_t> added = {});
  /// Counts a level whose token the head contains; the first level is 1.
  void count_level(std::size_t depth, bool accepted) noexcept;
  /// Counts a round that drafted `levels` levels with a size and took `seconds`, the target's pass
  /// included.
  void count_round(std::size_t size, std::size_t levels, double seconds);

  /// The share of emitted tokens that a head of a size contains; 1 before any was counted.
  [[nodiscard]] double coverage(std::size_t size) const;

  /// The size that gives the most tokens per second; the largest until enough is known.
  [[nodiscard]] std::size_t best() const;

 private:
  static constexpr double window = 512;  // tokens or rounds after which old ones count half
  static constexpr double enough = 32;

  struct Size {
    double covered = 0;
    double rows    = 0;  // rows that its products multiplied
  };

  [[nodiscard]] std::size_t rows(std::size_t size,
                                 std::span<const std::size_t> added) const noexcept;
  [[nodiscard]] double covered(std::size_t size) const noexcept;
  [[nodiscard]] double level_seconds(std::size_t size) const noexcept;
  // 1 plus the expected number of accepted levels, for the average number of levels.
  [[nodiscard]] double tokens_per_round(std::size_t size) const noexcept;

  HeadCosts costs_;
  AcceptanceEstimate acceptance_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<Size> sizes_;
  double tokens_ = 0, rounds_ = 0, levels_ = 0, rest_ = 0;
};

}  // namespace tooldecode::draft

namespace tooldecode {

/// Before each round, chooses how many head rows an EagleDrafter or a MedusaDrafter uses. It takes
/// the size that gives the most tokens per second, from the cost of each size on this machine and
/// the ranks of the emitted tokens.
///
/// `SizedHeadDrafter{EagleDrafter{layer, head}, draft::HeadCosts::measure(head)}`. It affects only
/// the speed, never the tokens. Copies learn together.
///
/// \par Complexity  as the drafter, O(nodes log nodes), and one mask per emitted token; 4 bytes per
///                  token of the vocabulary
/// \par Threads     const members may run concurrently
/// \par Errors      those of the drafter; constructor: Error{invalid_option} if the costs have more
///                  rows than the head has ranked
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, whose size of the head is fixed
template <class D>
class SizedHeadDrafter {
  using Head = decltype(D::Request::head);
  static_assert(
      requires(const Head& head, std::size_t k) {
        { head.first(k) } -> std::same_as<Head>;
        { head.ranked_size() } -> std::same_as<std::size_t>;
      }, "SizedHeadDrafter: the drafter's head must have ranks, as a FrequencyRankedHead has");

 public:
  static constexpr bool reads_hidden = D::reads_hidden;
  using Clock                        = std::chrono::steady_clock;

  /// A constraint's state of any type.
  using StateBytes = std::array<std::byte, 16>;

  struct Request {
    typename D::Request inner;
    Head whole;                      // with the request's added rows
    std::vector<TokenId> own;        // tokens of the added rows, ascending
    std::vector<std::size_t> added;  // by size: rows beside the ranked ones
    std::optional<DraftTree> last;   // tree of the previous round
    std::size_t length = 0;          // prompt and answer when `last` was made
    std::size_t size   = 0;          // head size that made `last`
    std::size_t levels = 0;
    Clock::time_point start;
    StateBytes state = {};  // the constraint's state then
  };

  SizedHeadDrafter(D drafter, draft::HeadCosts costs)
      : SizedHeadDrafter(std::move(drafter),
                         std::make_shared<draft::CoverageEstimate>(std::move(costs))) {}
  /// \param learnt  estimate to share and update; not null
  SizedHeadDrafter(D drafter, std::shared_ptr<draft::CoverageEstimate> learnt)
      : drafter_(std::move(drafter)), learnt_(std::move(learnt)) {
    const Head head = drafter_.begin({}).head;
    static_cast<void>(head.first(learnt_->costs().rows(learnt_->costs().size() - 1)));
    std::vector<std::size_t> ranks(head.vocabulary_size(), draft::CoverageEstimate::never);
    for (std::size_t i = 0; i < head.size(); ++i) {
      // Rows after the ranked ones exist at every size.
      ranks[static_cast<std::size_t>(head.token(i))] =
          i < head.ranked_size() ? i : draft::CoverageEstimate::always;
    }
    ranks_ = std::make_shared<const std::vector<std::size_t>>(std::move(ranks));
  }

  [[nodiscard]] std::size_t budget() const noexcept { return drafter_.budget(); }
  [[nodiscard]] double min_probability() const noexcept { return drafter_.min_probability(); }
  [[nodiscard]] Request begin(std::span<const TokenId> prompt) const {
    typename D::Request inner = drafter_.begin(prompt);
    Head whole                = inner.head;
    std::vector<TokenId> own;  // which every size has
    const Head added = whole.first(0);
    for (std::size_t i = 0; i < added.size(); ++i) own.push_back(added.token(i));
    std::ranges::sort(own);
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < learnt_->costs().size(); ++i) {
      const std::size_t ranked = learnt_->costs().rows(i);
      rows.push_back(own.empty() ? 0 : whole.first(ranked).size() - ranked);
    }
    return {std::move(inner),
            std::move(whole),
            std::move(own),
            std::move(rows),
            std::nullopt,
            0,
            0,
            0,
            {},
            {}};
  }
  [[nodiscard]] const draft::CoverageEstimate& coverage() const noexcept { return *learnt_; }

  template <ConstraintPolicy C>
    requires CandidateDrafter<D, C>
  void propose(Request& request, const DraftContext<C>& context,
               DraftCandidates<C>& candidates) const {
    const auto now = Clock::now();
    learn(request, context, now);
    request.start      = now;
    request.size       = learnt_->best();
    request.inner.head = request.whole.first(learnt_->costs().rows(request.size));
    drafter_.propose(request.inner, context, candidates);
    request.last.emplace(
        candidates.best(std::min(budget() + 1, context.max_nodes), min_probability()));
    request.length = context.length();
    request.levels = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      request.levels = std::max(request.levels, candidates.depth(i));
    }
    std::memcpy(request.state.data(), &context.state, sizeof(context.state));
  }

 private:
  // Follows the last tree along the tokens emitted since.
  template <ConstraintPolicy C>
  void learn(Request& request, const DraftContext<C>& context, Clock::time_point now) const {
    if (!request.last) return;
    const DraftTree& tree                    = *request.last;
    const std::chrono::duration<double> took = now - request.start;
    learnt_->count_round(request.size, request.levels, took.count());

    const C& constraint = context.constraint;
    TokenMask mask(constraint.vocabulary_size());
    std::optional<typename C::State> state = state_of<C>(request);
    std::optional<std::size_t> node        = 0;
    for (std::size_t at = request.length; at < context.length() && state; ++at) {
      const TokenId token = context.token(at);
      constraint.fill_mask(*state, mask.words());
      const std::size_t allowed = mask.count();
      const std::size_t rank    = rank_of(request, token);
      learnt_->count_token(rank, allowed, request.added);
      if (node && !tree.is_leaf(*node)) {
        const auto child = tree.find_child(*node, token);
        if (learnt_->has(request.size, rank, allowed, request.added)) {
          learnt_->count_level(tree.depth(*node) + 1, child.has_value());
        }
        node = child;
      } else {
        node.reset();
      }
      state = constraint.advance(*state, token);
    }
  }

  template <ConstraintPolicy C>
  static typename C::State state_of(const Request& request) {
    typename C::State state;
    std::memcpy(&state, request.state.data(), sizeof(state));
    return state;
  }
  [[nodiscard]] std::size_t rank_of(const Request& request, TokenId token) const {
    if (std::ranges::binary_search(request.own, token)) return draft::CoverageEstimate::always;
    return (*ranks_)[static_cast<std::size_t>(token)];
  }

  D drafter_;
  std::shared_ptr<draft::CoverageEstimate> learnt_;
  std::shared_ptr<const std::vector<std::size_t>> ranks_;  // [V]
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/sized_head_drafter.ipp>
#endif
