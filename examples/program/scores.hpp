/// \file
/// Statistics of a method over many rows: shares, costs and confidence intervals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/research/classify.hpp>

namespace program {

struct Result {
  tooldecode::ErrorClass error = tooldecode::ErrorClass::correct;
  double seconds               = 0;
  std::size_t passes           = 0;
  std::size_t tokens           = 0;
  double prompt_seconds        = 0;  ///< part of `seconds` in which the model read the prompt
};

struct Scores {
  std::string name;
  std::size_t orders = 0;  ///< of tool-decoding
  std::vector<Result> rows{};

  [[nodiscard]] std::size_t count(tooldecode::ErrorClass error) const {
    return static_cast<std::size_t>(std::count_if(
        rows.begin(), rows.end(), [&](const Result& row) { return row.error == error; }));
  }
  [[nodiscard]] double share(tooldecode::ErrorClass error) const {
    return per_row(static_cast<double>(count(error)));
  }
  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const Result& row : rows) sum += row.seconds;
    return sum;
  }
  [[nodiscard]] double prompt_seconds() const {
    double sum = 0;
    for (const Result& row : rows) sum += row.prompt_seconds;
    return sum;
  }
  [[nodiscard]] double passes() const {
    double sum = 0;
    for (const Result& row : rows) sum += static_cast<double>(row.passes);
    return sum;
  }
  [[nodiscard]] double tokens() const {
    double sum = 0;
    for (const Result& row : rows) sum += static_cast<double>(row.tokens);
    return sum;
  }
  [[nodiscard]] double per_row(double sum) const {
    return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  }
};

struct Interval {
  double low = 0, high = 0;
};

/// The percentile bootstrap: 1,000 resamples of the rows with replacement. Resamples for which
/// `statistic`, a function of row indices, is undefined are ignored.
template <class F>
Interval bootstrap(std::size_t rows, std::uint64_t seed, F statistic) {
  constexpr std::size_t resamples = 1000;
  std::mt19937_64 random(seed);
  std::vector<std::size_t> drawn(rows);
  std::vector<double> values;
  for (std::size_t i = 0; i < resamples && rows > 0; ++i) {
    for (std::size_t& row : drawn) row = random() % rows;
    const std::optional<double> value = statistic(std::span<const std::size_t>(drawn));
    if (value) values.push_back(*value);
  }
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double share) {
    return values[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {quantile(0.025), quantile(0.975)};
}

inline Interval accuracy_interval(const Scores& scores, std::uint64_t seed) {
  return bootstrap(scores.rows.size(), seed, [&](auto drawn) -> std::optional<double> {
    const auto correct = std::count_if(drawn.begin(), drawn.end(), [&](std::size_t row) {
      return scores.rows[row].error == tooldecode::ErrorClass::correct;
    });
    return static_cast<double>(correct) / static_cast<double>(drawn.size());
  });
}

/// McNemar's exact test: the probability of counts at least as uneven if a row that only one of two
/// methods gets wrong is as likely to be either's.
inline double mcnemar(std::size_t first_only, std::size_t second_only) {
  const std::size_t rows   = first_only + second_only;
  const std::size_t fewer  = std::min(first_only, second_only);
  const auto log_factorial = [](std::size_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  double tail              = 0;
  for (std::size_t i = 0; i <= fewer; ++i) {
    tail += std::exp(log_factorial(rows) - log_factorial(i) - log_factorial(rows - i) -
                     static_cast<double>(rows) * std::numbers::ln2);
  }
  return std::min(1.0, 2 * tail);
}

/// The share by which value errors decrease compared with another method on the same rows; empty if
/// that has none.
struct Reduction {
  std::optional<double> share;
  Interval interval;
  std::size_t mended = 0, added = 0;  ///< rows that only the other method, or only this, gets wrong
  double p = 1;                       ///< of McNemar's exact test
};

/// The reduction of the value errors of `before`, with the interval over pairs.
inline Reduction value_error_reduction(const Scores& before, const Scores& after,
                                       std::uint64_t seed) {
  const auto share = [&](const auto& rows) -> std::optional<double> {
    std::ptrdiff_t errors = 0, left = 0;
    for (const std::size_t row : rows) {
      errors += before.rows[row].error == tooldecode::ErrorClass::value;
      left += after.rows[row].error == tooldecode::ErrorClass::value;
    }
    if (errors == 0) return std::nullopt;
    return 1 - static_cast<double>(left) / static_cast<double>(errors);
  };
  std::vector<std::size_t> all(before.rows.size());
  for (std::size_t row = 0; row < all.size(); ++row) all[row] = row;
  Reduction reduction{share(all), bootstrap(all.size(), seed, share)};
  for (const std::size_t row : all) {
    const bool was = before.rows[row].error == tooldecode::ErrorClass::value;
    const bool is  = after.rows[row].error == tooldecode::ErrorClass::value;
    reduction.mended += was && !is;
    reduction.added += is && !was;
  }
  reduction.p = mcnemar(reduction.mended, reduction.added);
  return reduction;
}

}  // namespace program
