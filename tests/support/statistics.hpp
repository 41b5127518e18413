/// \file
/// Tests whether samples have a distribution: chi-squared with its exact tail, and total variation.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

#include <tooldecode/core/config.hpp>

namespace tooldecode::test {

/// The probability that a chi-squared number with `degrees` degrees of freedom exceeds x, by the
/// finite sums that integration by parts gives for integers.
[[nodiscard]] inline double chi_squared_tail(double x, std::size_t degrees) {
  if (x <= 0 || degrees == 0) return 1;
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? std::sqrt(2 * x / std::numbers::pi) * std::exp(-x / 2) : std::exp(-x / 2);
  double tail = is_odd ? std::erfc(std::sqrt(x / 2)) : 0;
  for (std::size_t n = is_odd ? 3 : 2; n <= degrees; n += 2) {
    tail += term;
    term *= x / static_cast<double>(n);
  }
  return tail;
}

/// The probability of counts at least this far from a distribution; 0 if something impossible was
/// counted. Cells with an expectation below five are merged.
[[nodiscard]] inline double p_value(std::span<const std::size_t> counts,
                                    std::span<const double> distribution) {
  TOOLDECODE_ASSERT(counts.size() == distribution.size());
  double total = 0;
  for (const std::size_t count : counts) total += static_cast<double>(count);
  double statistic    = 0;
  std::size_t cells   = 0;
  double few_count    = 0;
  double few_expected = 0;
  const auto add      = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto count      = static_cast<double>(counts[i]);
    const double expected = distribution[i] * total;
    if (expected == 0 && count > 0) return 0;
    if (expected >= 5) {
      add(count, expected);
    } else {
      few_count += count;
      few_expected += expected;
    }
  }
  if (few_expected > 0) add(few_count, few_expected);
  return chi_squared_tail(statistic, cells - 1);
}

/// Half the sum of absolute differences of two distributions.
[[nodiscard]] inline double total_variation(std::span<const double> a, std::span<const double> b) {
  TOOLDECODE_ASSERT(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / 2;
}

}  // namespace tooldecode::test
