/// \file
/// BranchNoise: noise that takes every possible outcome in turn, to compute exact distributions of
/// random programs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/verify/target_distribution.hpp>

#include <support/softmax.hpp>

namespace tooldecode::test {

/// Noise for acceptance rules in which the probability of each outcome is known; `next` moves to
/// the next outcome.
class BranchNoise {
 public:
  [[nodiscard]] std::optional<TokenId> draw(const verify::TargetDistribution& distribution) {
    return draw(std::span<const double>(softmax(distribution)));
  }
  [[nodiscard]] std::optional<TokenId> draw(std::span<const double> weights) {
    double sum = 0;
    for (const double w : weights) sum += w;
    if (!(sum > 0)) return std::nullopt;
    std::vector<double> chances;
    for (const double w : weights) chances.push_back(w / sum);
    return static_cast<TokenId>(pick(std::move(chances)));
  }
  [[nodiscard]] bool accept(double probability) {
    last_ = probability < 1 ? std::max(probability, 0.0) : 1.0;
    return pick({1 - last_, last_}) == 1;
  }

  /// A faulty draw: by cumulated weights, with the coin that the last `accept` rejected.
  [[nodiscard]] std::optional<TokenId> draw_with_last_coin(std::span<const double> weights) {
    double sum = 0;
    for (const double w : weights) sum += w;
    std::vector<double> chances;
    double below = 0;
    for (const double w : weights) {
      const double above = below + w / sum;
      chances.push_back(std::max(above - std::max(below, last_), 0.0) / (1 - last_));
      below = above;
    }
    return static_cast<TokenId>(pick(std::move(chances)));
  }

  [[nodiscard]] double probability() const noexcept { return probability_; }

  /// Moves to the next outcome; false after the last.
  bool next() {
    depth_       = 0;
    probability_ = 1;
    for (; !choices_.empty(); choices_.pop_back()) {
      if (choices_.back().find(choices_.back().taken + 1)) return true;
    }
    return false;
  }

 private:
  struct Choice {
    std::vector<double> chances;
    std::size_t taken = 0;

    bool find(std::size_t first) {
      for (taken = first; taken < chances.size(); ++taken) {
        if (chances[taken] > 0) return true;
      }
      return false;
    }
  };

  std::size_t pick(std::vector<double> chances) {
    if (depth_ == choices_.size()) {
      choices_.push_back({std::move(chances)});
      choices_.back().find(0);
    }
    const Choice& choice = choices_[depth_++];
    probability_ *= choice.chances[choice.taken];
    return choice.taken;
  }

  std::vector<Choice> choices_;
  std::size_t depth_  = 0;
  double probability_ = 1;
  double last_        = 0;
};

/// The exact distribution of `process(noise)`: the probability of each token, and last of no token.
template <class Noise = BranchNoise, class Process>
[[nodiscard]] std::vector<double> enumerate(std::size_t vocabulary_size, Process process) {
  std::vector<double> distribution(vocabulary_size + 1);  // [V + 1]
  Noise noise;
  do {
    const std::optional<TokenId> token = process(noise);
    distribution[token ? static_cast<std::size_t>(*token) : vocabulary_size] += noise.probability();
  } while (noise.next());
  return distribution;
}

}  // namespace tooldecode::test
