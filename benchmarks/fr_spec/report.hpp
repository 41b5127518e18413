// Tables of the measurements, as text, JSON and charts.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "bench.hpp"
#include "statistics.hpp"

namespace fr_spec {

struct Domain {
  Runs replayed, timed;
  std::vector<std::vector<std::size_t>> covered;  // [prompts][rows], of the answers' tokens
  std::size_t near_ties = 0;

  void add(const Measured& one) {
    replayed.push_back(one.replayed);
    if (!one.timed.empty()) timed.push_back(one.timed);
    covered.push_back(one.covered);
    near_ties += one.near_ties;
  }
};
using Domains = std::map<std::string, Domain>;

// Prints all tables beside the paper's figures, and returns them with the number of answers that
// differ.
Json report(const Options& options, Bench& bench, const Domains& domains);

// Times of head products by rows and states, including the best ten tokens and the log-sum-exp.
Json measure_products();

// Draws two charts of a report into a folder: acceptance and speed by K, and the time of a round by
// K.
void draw(const Json& report, const std::string& folder);

}  // namespace fr_spec
