/// \file
/// What the benchmark prints: numbers, tables, and whether the claims hold.
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/json_value.hpp>

#include <program/run_record.hpp>

namespace tool_latency {

inline std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << (std::abs(value) < 5e-10 ? 0.0 : value);
  return out.str();
}

inline std::string percent(double share) {
  return fixed(100 * share, 1) + " %";
}

inline double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

inline double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

inline std::string agents_of(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " agent" : " agents");
}

inline void print_row(const std::vector<std::string>& cells) {
  std::cout << '|';
  for (const std::string& cell : cells) std::cout << ' ' << cell << " |";
  std::cout << '\n';
}

inline void print_head(std::string_view title, const std::vector<std::string>& names) {
  std::cout << '\n' << title << "\n\n";
  print_row(names);
  print_row(std::vector<std::string>(names.size(), "---:"));
}

inline std::ofstream open_file(const std::filesystem::path& path) {
  std::ofstream file(path);
  if (!file) throw std::runtime_error(path.string() + ": cannot be written");
  return file;
}

/// Checks claims: prints a line for each and records whether all hold.
class Claims {
 public:
  void check(std::string_view what, bool holds, const std::string& found) {
    std::cout << (holds ? "holds: " : "FAILS: ") << what << ": " << found << '\n';
    report_.push_back({{"claim", what}, {"holds", holds}, {"found", found}});
    all_ = all_ && holds;
  }
  [[nodiscard]] bool all_hold() const { return all_; }
  [[nodiscard]] const tooldecode::JsonValue& report() const { return report_; }

 private:
  tooldecode::JsonValue report_ = tooldecode::JsonValue::array();
  bool all_                     = true;
};

/// Writes how the file was made, the options, the claims and their results, the points (one line
/// each), and further values.
inline void write_results(const std::string& path, const tooldecode::JsonValue& parameters,
                          const tooldecode::JsonValue& claims, const tooldecode::JsonValue& columns,
                          const std::vector<std::string>& rows,
                          const tooldecode::JsonValue& others = tooldecode::JsonValue::object()) {
  std::ofstream file = open_file(path);
  file << "{\n\"made_by\": " << program::run_record().text({.indent = 1})
       << ",\n\"parameters\": " << parameters.text({.indent = 1})
       << ",\n\"claims\": " << claims.text({.indent = 1}) << ",\n\"columns\": " << columns.text()
       << ",\n\"points\": [\n";
  std::string separator;
  for (const std::string& row : rows) {
    file << separator << row;
    separator = ",\n";
  }
  file << "\n]";
  for (const auto& [name, value] : others.items()) {
    file << ",\n\"" << name << "\": " << value.text();
  }
  file << "\n}\n";
}

}  // namespace tool_latency
