/// \file
/// A comparison of methods as Markdown tables, JSON, and a plot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/research/classify.hpp>

#include <program/json.hpp>
#include <program/plot.hpp>
#include <program/scores.hpp>

namespace program {

struct Report {
  std::vector<Scores> scores{};       ///< by method
  std::vector<std::string> groups{};  ///< by row
  std::uint64_t seed   = 1;           ///< of the confidence intervals
  std::size_t left_out = 0;

  /// Time relative to greedy decoding in the same run; empty if that was not run.
  [[nodiscard]] std::optional<double> relative_time(const Scores& method) const;
  /// Tool-decoding with one order, the baseline for more orders.
  [[nodiscard]] const Scores* find_one_order() const;
};

namespace detail {

constexpr tooldecode::ErrorClass error_classes[]{
    tooldecode::ErrorClass::awareness, tooldecode::ErrorClass::selection,
    tooldecode::ErrorClass::format, tooldecode::ErrorClass::key, tooldecode::ErrorClass::value};

std::string percent(double share);
std::string percent(const Interval& shares);

std::string table_head(const std::vector<std::string>& columns);

std::string main_table(const Report& report);

std::vector<std::pair<std::string, std::vector<std::size_t>>> rows_by_group(const Report& report);

double accuracy_of(const Scores& method, const std::vector<std::size_t>& rows);

std::string group_table(const Report& report);

std::string reduction_table(const Report& report);

}  // namespace detail

/// One table of the methods, their accuracy by group, and the effect of more orders on value
/// errors.
std::string tables(const Report& report);

/// The same numbers by method: shares in [0, 1], times in seconds.
Json to_json(const Report& report);

/// Accuracy against time; one line joins the numbers of orders.
Plot to_plot(const Report& report);

}  // namespace program
