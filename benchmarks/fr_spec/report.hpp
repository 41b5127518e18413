// Tables of what was measured, as text, JSON and charts.
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

// Prints all tables beside the paper's figures, and gives them with the number of answers that
// differ.
Json report(const Options& options, Bench& bench, const Domains& domains);

// Times of heads' products, their best ten tokens and log-sum-exp included, by rows and states.
Json measure_products();

// Two charts of a report, in a folder: acceptance and speed by K, and a round's time by K.
void draw(const Json& report, const std::string& folder);

}  // namespace fr_spec
