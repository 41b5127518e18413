// Sums over prompts, and their confidence intervals.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "ways.hpp"

namespace fr_spec {

// The runs of one domain's prompts: [prompts][ways].
using Runs = std::vector<std::vector<Run>>;
using Ends = std::array<double, 2>;

struct Sums {
  double tokens = 0, passes = 0, seconds = 0, prompts = 0, rounds = 0, drafted = 0;
  double target = 0, drafting = 0, layer = 0, head = 0, differ = 0;

  void add(const Run& run) {
    tokens += static_cast<double>(run.tokens), passes += static_cast<double>(run.passes);
    rounds += static_cast<double>(run.rounds), drafted += static_cast<double>(run.drafted);
    seconds += run.seconds, target += run.target, drafting += run.drafting;
    layer += run.layer, head += run.head, differ += run.differs;
    ++prompts;
  }
  // Tokens per pass, without the prompt's pass, which gives one token in any case.
  [[nodiscard]] double acceptance() const { return (tokens - prompts) / (passes - prompts); }
  [[nodiscard]] double rate() const { return tokens / seconds; }
  [[nodiscard]] double verifying() const { return std::max(1.0, passes - prompts); }
};

// Which prompts of each domain count, and how often.
using Drawn = std::vector<std::vector<std::size_t>>;

inline Sums sums_of(const Runs& runs, std::size_t way, std::span<const std::size_t> prompts) {
  Sums sums;
  for (const std::size_t p : prompts) sums.add(runs[p][way]);
  return sums;
}

// The mean over domains with equal weights, as in the paper's tables.
template <class Figure>
double mean(std::span<const Runs* const> domains, const Drawn& drawn, const Figure& figure) {
  double sum = 0;
  for (std::size_t d = 0; d < domains.size(); ++d) sum += figure(*domains[d], drawn[d]);
  return sum / static_cast<double>(domains.size());
}

inline Drawn all_of(std::span<const Runs* const> domains) {
  Drawn all;
  for (const Runs* runs : domains) {
    all.emplace_back(runs->size());
    for (std::size_t i = 0; i < runs->size(); ++i) all.back()[i] = i;
  }
  return all;
}

// The middle 95 % of a figure over prompts drawn with replacement within their domains.
template <class Figure>
Ends interval(std::span<const Runs* const> domains, const Figure& figure) {
  constexpr int rounds = 1000;
  std::mt19937 random{1};
  std::vector<double> values;
  Drawn drawn = all_of(domains);
  for (int round = 0; round < rounds; ++round) {
    for (auto& some : drawn) {
      for (std::size_t& one : some) one = random() % some.size();
    }
    values.push_back(figure(drawn));
  }
  std::sort(values.begin(), values.end());
  return {values[25], values[974]};
}

}  // namespace fr_spec
