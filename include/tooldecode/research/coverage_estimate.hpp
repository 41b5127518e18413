/// \file
/// CoverageEstimate: which rows of a draft's head pay, learnt from the ranks of emitted tokens.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/draft_head.hpp>

namespace tooldecode::draft {

/// Some sizes of a draft's head and the seconds that a product of a level takes with each.
///
/// \par Shapes      known [sizes], (rows, seconds), rows ascending
/// \par Complexity  seconds O(sizes)
/// \par Threads     immutable
/// \par Errors      Error{invalid_option} for no sizes, sizes that do not ascend, and times that are
///                  not positive and finite
class HeadCosts {
 public:
  using Known = std::pair<std::size_t, double>;

  explicit HeadCosts(std::vector<Known> known);

  /// Times products of a head: the least of some rounds, of all its rows and of halves of them down
  /// to `least`.
  ///
  /// \param states  of a level
  template <DraftHead H>
  [[nodiscard]] static HeadCosts measure(const H& head, std::size_t states = 4,
                                         std::size_t least = 512) {
    constexpr int rounds = 5;
    std::vector<float> hidden(states * head.hidden_size());
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = i % 2 == 0 ? 0.5F : -0.5F;
    std::vector<Known> known;
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

  /// The sizes that may be chosen.
  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }
  [[nodiscard]] std::size_t rows(std::size_t i) const noexcept { return known_[i].first; }
  /// Of a product of so many rows: a straight line between two sizes, below the least through 0.
  [[nodiscard]] double seconds(double rows) const noexcept;

 private:
  std::vector<Known> known_;
};

/// How often a head of each size would have had the emitted tokens, what its levels would have
/// multiplied, how often a token that a head has is found, and what the rest of a round takes.
///
/// A token's rank says of every size whether it has the token, whichever was used. Old rounds count
/// less and less, so that a text whose ranks change is followed.
///
/// \par Complexity  O(sizes) for a token, O(sizes x levels) to choose
/// \par Threads     any number at once
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, section 2: what a round takes, and
///                  table 1: what is lost with the rows
class CoverageEstimate {
 public:
  static constexpr std::size_t always = 0;  ///< the rank of a token that any size has
  static constexpr std::size_t never  = static_cast<std::size_t>(-1);

  explicit CoverageEstimate(HeadCosts costs) : costs_(std::move(costs)), sizes_(costs_.size()) {}

  [[nodiscard]] const HeadCosts& costs() const noexcept { return costs_; }

  /// Whether a head of a size has a token, where so many tokens are allowed: all of them, if they
  /// are fewer than its rows.
  [[nodiscard]] bool has(std::size_t size, std::size_t rank, std::size_t allowed) const noexcept;

  /// An emitted token of a rank, at a place where so many tokens were allowed.
  void count_token(std::size_t rank, std::size_t allowed);
  /// A level, the first being 1, whose token the head had.
  void count_level(std::size_t depth, bool accepted) noexcept;
  /// A round that drafted so many levels with a size and took so long, the target's pass included.
  void count_round(std::size_t size, std::size_t levels, double seconds);

  /// The share of emitted tokens that a head of a size has; 1 before any was counted.
  [[nodiscard]] double coverage(std::size_t size) const;

  /// The size with which tokens come fastest; the largest until enough is known.
  [[nodiscard]] std::size_t best() const;

 private:
  static constexpr double window = 512;  // tokens, and rounds, behind which old ones count half
  static constexpr double enough = 32;   // tokens

  struct Size {
    double covered = 0;
    double rows    = 0;  // that its products multiplied
  };

  [[nodiscard]] double covered(std::size_t size) const noexcept;
  [[nodiscard]] double level_seconds(std::size_t size) const noexcept;
  // One, and those of the levels, as many of the last as there are on average.
  [[nodiscard]] double tokens_per_round(std::size_t size) const noexcept;

  HeadCosts costs_;
  AcceptanceEstimate acceptance_;
  mutable std::mutex mutex_;  // of what is below
  std::vector<Size> sizes_;
  double tokens_ = 0, rounds_ = 0, levels_ = 0, rest_ = 0;
};

}  // namespace tooldecode::draft

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/coverage_estimate.ipp>
#endif
