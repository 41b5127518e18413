/// \file
/// AcceptanceEstimate: how often guesses are accepted, learned while drafting.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode::draft {

/// Counts guesses by the probability that their drafter gave them, levels by whether their best
/// guess was accepted, and the time that drafting a level takes, recent ones most.
///
/// Until there are enough trials, a guess counts as good as its drafter says, and a level as
/// accepted six times in ten.
///
/// \par Complexity  O(1)
/// \par Threads     thread-safe; a reader may see some counts of a concurrent update
class AcceptanceEstimate {
 public:
  static constexpr std::size_t levels = 16;  ///< deeper ones count as the last

  void count_guess(double probability, bool accepted) noexcept;
  /// Counts a level below an accepted one; the first level is 1.
  void count_level(std::size_t depth, bool accepted) noexcept;
  /// Counts a draft of some levels, at least one.
  void count_time(std::size_t drafted, std::chrono::nanoseconds took) noexcept;

  /// The probability that a guess is accepted, given that its parent is.
  [[nodiscard]] double of_guess(double probability) const noexcept;
  /// The least probability from which guesses are accepted with rate `acceptance`; 1 if none are.
  [[nodiscard]] double probability_of(double acceptance) const noexcept;
  /// The probability that the best guess of a level is accepted, given that the level above is.
  [[nodiscard]] double of_level(std::size_t depth) const noexcept;
  /// Seconds to draft a level, averaged over about the last hundred; 0 before any was measured.
  [[nodiscard]] double seconds_of_level() const noexcept;

 private:
  class Share {
   public:
    void count(bool accepted) noexcept;
    [[nodiscard]] double rate(double before) const noexcept;

   private:
    std::atomic<std::uint64_t> tried_ = 0, accepted_ = 0;
  };

  static constexpr std::size_t bins = 16;
  [[nodiscard]] static std::size_t bin(double probability) noexcept;
  [[nodiscard]] static double middle(std::size_t bin) noexcept;
  [[nodiscard]] static std::size_t level(std::size_t depth) noexcept;

  std::array<Share, bins> guesses_;
  std::array<Share, levels> levels_;
  std::atomic<std::uint64_t> drafted_ = 0;
  std::atomic<double> seconds_        = 0;  // of a level
};

}  // namespace tooldecode::draft

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/acceptance_estimate.ipp>
#endif
