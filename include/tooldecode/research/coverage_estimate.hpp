/// \file
/// CoverageEstimate: how many rows of a draft head pay off, learned from the ranks of emitted
/// tokens.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/draft_head.hpp>

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

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/coverage_estimate.ipp>
#endif
