/// \file
/// AcceptanceEstimate: how often guesses turn out right, learnt while drafting.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tooldecode::draft {

/// Counts guesses by the probability that their drafter gave them, levels by whether their best
/// guess was accepted, and the time that levels took to draft.
///
/// What has hardly been tried is taken to be as good as its drafter says, and a level as good as
/// most are.
///
/// \par Complexity  O(1)
/// \par Threads     any number at once; counts may be read between two of another thread
class AcceptanceEstimate {
 public:
  static constexpr std::size_t levels = 16;  ///< deeper ones count as the last

  /// A guess whose parent was accepted.
  void count_guess(double probability, bool accepted) noexcept {
    guesses_[bin(probability)].count(accepted);
  }
  /// A level below one that was accepted; the first is 1.
  void count_level(std::size_t depth, bool accepted) noexcept {
    levels_[level(depth)].count(accepted);
  }
  void count_time(std::size_t drafted, std::chrono::nanoseconds took) noexcept {
    nanoseconds_.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
    drafted_.fetch_add(drafted, std::memory_order_relaxed);
  }

  /// That a guess is accepted, where its parent is.
  [[nodiscard]] double of_guess(double probability) const noexcept {
    return guesses_[bin(probability)].rate(std::clamp(probability, 0.0, 1.0));
  }
  /// The least probability from which on guesses are accepted so often; 1 where none are.
  [[nodiscard]] double probability_of(double acceptance) const noexcept {
    std::size_t least = bins;
    while (least > 0 && guesses_[least - 1].rate(middle(least - 1)) >= acceptance) --least;
    return static_cast<double>(least) / static_cast<double>(bins);
  }
  /// That the best guess of a level is accepted, where one of the level above is.
  [[nodiscard]] double of_level(std::size_t depth) const noexcept {
    return levels_[level(depth)].rate(0.6);
  }
  /// Of drafting a level; 0 before any was.
  [[nodiscard]] double seconds_of_level() const noexcept {
    const auto drafted = static_cast<double>(drafted_.load(std::memory_order_relaxed));
    const auto spent   = static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
    return drafted == 0 ? 0 : 1e-9 * spent / drafted;
  }

 private:
  class Share {
   public:
    void count(bool accepted) noexcept {
      tried_.fetch_add(1, std::memory_order_relaxed);
      if (accepted) accepted_.fetch_add(1, std::memory_order_relaxed);
    }
    [[nodiscard]] double rate(double before) const noexcept {
      constexpr double weight = 8;  // of what was believed before anything was tried
      const auto accepted     = static_cast<double>(accepted_.load(std::memory_order_relaxed));
      const auto tried        = static_cast<double>(tried_.load(std::memory_order_relaxed));
      return std::min(1.0, (accepted + weight * before) / (tried + weight));
    }

   private:
    std::atomic<std::uint64_t> tried_ = 0, accepted_ = 0;
  };

  static constexpr std::size_t bins = 16;
  [[nodiscard]] static std::size_t bin(double probability) noexcept {
    const double at = std::clamp(probability, 0.0, 1.0) * static_cast<double>(bins);
    return std::min(static_cast<std::size_t>(at), bins - 1);
  }
  [[nodiscard]] static double middle(std::size_t bin) noexcept {
    return (static_cast<double>(bin) + 0.5) / static_cast<double>(bins);
  }
  [[nodiscard]] static std::size_t level(std::size_t depth) noexcept {
    return std::clamp<std::size_t>(depth, 1, levels) - 1;
  }

  std::array<Share, bins> guesses_;
  std::array<Share, levels> levels_;
  std::atomic<std::uint64_t> nanoseconds_ = 0, drafted_ = 0;
};

}  // namespace tooldecode::draft
