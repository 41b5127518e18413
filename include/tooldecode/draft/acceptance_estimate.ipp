#pragma once

#include <algorithm>

#include <tooldecode/draft/acceptance_estimate.hpp>

namespace tooldecode::draft {

TOOLDECODE_INLINE void AcceptanceEstimate::count_guess(double probability, bool accepted) noexcept {
  guesses_[bin(probability)].count(accepted);
}

TOOLDECODE_INLINE void AcceptanceEstimate::count_level(std::size_t depth, bool accepted) noexcept {
  levels_[level(depth)].count(accepted);
}

TOOLDECODE_INLINE void AcceptanceEstimate::count_time(std::size_t drafted,
                                                      std::chrono::nanoseconds took) noexcept {
  constexpr std::uint64_t recent = 100;  // levels that the mean remembers
  const std::uint64_t all        = drafted + drafted_.fetch_add(drafted, std::memory_order_relaxed);
  const auto count               = static_cast<double>(drafted);
  const double mine              = std::chrono::duration<double>(took).count() / count;
  const double weight =
      count / static_cast<double>(std::min(all, std::max<std::uint64_t>(drafted, recent)));
  double mean = seconds_.load(std::memory_order_relaxed);
  while (!seconds_.compare_exchange_weak(mean, mean + weight * (mine - mean),
                                         std::memory_order_relaxed)) {}
}

TOOLDECODE_INLINE double AcceptanceEstimate::of_guess(double probability) const noexcept {
  return guesses_[bin(probability)].rate(std::clamp(probability, 0.0, 1.0));
}

TOOLDECODE_INLINE double AcceptanceEstimate::probability_of(double acceptance) const noexcept {
  std::size_t least = bins;
  while (least > 0 && guesses_[least - 1].rate(middle(least - 1)) >= acceptance) --least;
  return static_cast<double>(least) / static_cast<double>(bins);
}

TOOLDECODE_INLINE double AcceptanceEstimate::of_level(std::size_t depth) const noexcept {
  return levels_[level(depth)].rate(0.6);
}

TOOLDECODE_INLINE double AcceptanceEstimate::seconds_of_level() const noexcept {
  return seconds_.load(std::memory_order_relaxed);
}

TOOLDECODE_INLINE void AcceptanceEstimate::Share::count(bool accepted) noexcept {
  tried_.fetch_add(1, std::memory_order_relaxed);
  if (accepted) accepted_.fetch_add(1, std::memory_order_relaxed);
}

TOOLDECODE_INLINE double AcceptanceEstimate::Share::rate(double before) const noexcept {
  constexpr double weight = 8;  // of the prior, in trials
  const auto accepted     = static_cast<double>(accepted_.load(std::memory_order_relaxed));
  const auto tried        = static_cast<double>(tried_.load(std::memory_order_relaxed));
  return std::min(1.0, (accepted + weight * before) / (tried + weight));
}

TOOLDECODE_INLINE std::size_t AcceptanceEstimate::bin(double probability) noexcept {
  const double at = std::clamp(probability, 0.0, 1.0) * static_cast<double>(bins);
  return std::min(static_cast<std::size_t>(at), bins - 1);
}

TOOLDECODE_INLINE double AcceptanceEstimate::middle(std::size_t bin) noexcept {
  return (static_cast<double>(bin) + 0.5) / static_cast<double>(bins);
}

TOOLDECODE_INLINE std::size_t AcceptanceEstimate::level(std::size_t depth) noexcept {
  return std::clamp<std::size_t>(depth, 1, levels) - 1;
}

}  // namespace tooldecode::draft
