/// \file
/// CheckTotals: the totals of a run of check.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace program {

struct Percentiles {
  double mean = 0, p50 = 0, p99 = 0, p999 = 0, most = 0;
};

inline Percentiles percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const double value : values) total += value;
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {total / static_cast<double>(values.size()), at(0.5), at(0.99), at(0.999), values.back()};
}

/// Counts over texts, and times in microseconds.
struct CheckTotals {
  std::size_t rows = 0, accepted = 0, refused = 0, tokens = 0, forced = 0;
  std::size_t judged = 0, right = 0;  // tests whose rows say what is valid
  std::size_t disagreements = 0;
  std::vector<double> build, first, masks;
  std::map<std::string, std::size_t> reasons;
  std::optional<std::string> bad_input;

  void summarise(const std::string& format, double seconds, bool timing) const {
    const auto share = [](std::size_t part, std::size_t whole) {
      return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    };
    std::cerr << std::fixed << std::setprecision(2);
    std::cerr << rows << " rows in " << seconds << " s, format " << format << ": " << accepted
              << " accepted (" << share(accepted, rows) << " %), " << rows - accepted - refused
              << " rejected; ";
    if (refused != 0) std::cerr << refused << " under specifications that are refused; ";
    if (judged != 0) {
      std::cerr << right << " of " << judged << " verdicts as the rows have them; ";
    }
    std::cerr << tokens << " tokens, " << share(forced, tokens) << " % of them forced\n";
    std::vector<std::pair<std::size_t, std::string>> by_count;
    for (const auto& [reason, count] : reasons) by_count.emplace_back(count, reason);
    std::sort(by_count.rbegin(), by_count.rend());
    for (std::size_t i = 0; i < std::min<std::size_t>(by_count.size(), 12); ++i) {
      std::cerr << std::setw(8) << by_count[i].first << "  " << by_count[i].second << '\n';
    }
    if (!timing) return;
    const auto line = [](const char* what, const std::vector<double>& values) {
      const Percentiles p = percentiles(values);
      std::cerr << std::left << std::setw(14) << what << std::right << std::setw(12) << p.mean
                << std::setw(12) << p.p50 << std::setw(12) << p.p99 << std::setw(12) << p.p999
                << std::setw(12) << p.most << '\n';
    };
    std::cerr << "microseconds         mean         p50         p99       p99.9       worst\n";
    line("build", build);
    line("first mask", first);
    line("mask", masks);
  }
};

}  // namespace program
