#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <program/reports.hpp>

namespace program {

std::optional<double> Report::relative_time(const Scores& method) const {
  for (const Scores& other : scores) {
    if (other.name == "greedy" && other.seconds() > 0) return method.seconds() / other.seconds();
  }
  return std::nullopt;
}

const Scores* Report::find_one_order() const {
  const auto found = std::find_if(scores.begin(), scores.end(),
                                  [](const Scores& method) { return method.orders == 1; });
  return found == scores.end() ? nullptr : &*found;
}

}  // namespace program

namespace program::detail {

std::string percent(double share) {
  return rounded(100 * share) + " %";
}

std::string percent(const Interval& shares) {
  return rounded(100 * shares.low) + " to " + rounded(100 * shares.high) + " %";
}

std::string table_head(const std::vector<std::string>& columns) {
  std::string head = "|", line = "|";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    head += ' ' + columns[i] + " |";
    line += i == 0 ? " --- |" : " ---: |";
  }
  return head + '\n' + line + '\n';
}

std::string main_table(const Report& report) {
  std::string text = table_head({"method", "samples", "accuracy", "95 % interval", "awareness",
                                 "selection", "format", "key", "value", "ms/sample",
                                 "of which prompt", "passes/sample", "time / greedy"});
  for (const Scores& method : report.scores) {
    const auto relative = report.relative_time(method);
    text += "| " + method.name + " | " + std::to_string(method.rows.size()) + " | " +
            percent(method.share(tooldecode::ErrorClass::correct)) + " | " +
            percent(accuracy_interval(method, report.seed)) + " | ";
    for (const auto error : error_classes) text += percent(method.share(error)) + " | ";
    text += rounded(1000 * method.per_row(method.seconds()), "%.2f") + " | " +
            rounded(1000 * method.per_row(method.prompt_seconds()), "%.2f") + " | " +
            rounded(method.per_row(method.passes()), "%.2f") + " | " +
            (relative ? rounded(*relative, "%.3f") : "") + " |\n";
  }
  return text;
}

std::vector<std::pair<std::string, std::vector<std::size_t>>> rows_by_group(const Report& report) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  for (std::size_t row = 0; row < report.groups.size(); ++row) {
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const auto& group) { return group.first == report.groups[row]; });
    if (at == groups.end()) at = groups.insert(at, {report.groups[row], {}});
    at->second.push_back(row);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

double accuracy_of(const Scores& method, const std::vector<std::size_t>& rows) {
  const auto correct = std::count_if(rows.begin(), rows.end(), [&](std::size_t row) {
    return method.rows[row].error == tooldecode::ErrorClass::correct;
  });
  return static_cast<double>(correct) / static_cast<double>(rows.size());
}

std::string group_table(const Report& report) {
  const auto groups = rows_by_group(report);
  if (groups.size() < 2) return "";
  std::vector<std::string> columns{"accuracy"};
  for (const auto& [name, rows] : groups) {
    columns.push_back(name + " (" + std::to_string(rows.size()) + ')');
  }
  std::string text = '\n' + table_head(columns);
  for (const Scores& method : report.scores) {
    text += "| " + method.name + " |";
    for (const auto& [name, rows] : groups) text += ' ' + percent(accuracy_of(method, rows)) + " |";
    text += '\n';
  }
  return text;
}

std::string reduction_table(const Report& report) {
  const Scores* before = report.find_one_order();
  if (!before || report.scores.empty()) return "";
  std::string rows;
  for (const Scores& method : report.scores) {
    if (method.orders < 2) continue;
    const auto reduction = value_error_reduction(*before, method, report.seed);
    rows += "| " + std::to_string(method.orders) + " | " +
            std::to_string(method.count(tooldecode::ErrorClass::value)) + " | " +
            (reduction.share ? percent(*reduction.share) + " | " + percent(reduction.interval)
                             : "none to reduce |") +
            " | " + std::to_string(reduction.mended) + " / " + std::to_string(reduction.added) +
            " | " + rounded(reduction.p, "%.3f") + " |\n";
  }
  if (rows.empty()) return "";
  return '\n' +
         table_head({"oc", "value errors", "reduction against oc = 1", "95 % interval",
                     "rows mended / added", "p (McNemar)"}) +
         "| 1 | " + std::to_string(before->count(tooldecode::ErrorClass::value)) + " | | | | |\n" +
         rows;
}

}  // namespace program::detail

namespace program {

std::string tables(const Report& report) {
  return detail::main_table(report) + detail::group_table(report) + detail::reduction_table(report);
}

Json to_json(const Report& report) {
  Json result          = Json::object();
  const Scores* before = report.find_one_order();
  const auto groups    = detail::rows_by_group(report);
  for (const Scores& method : report.scores) {
    const Interval interval = accuracy_interval(method, report.seed);
    Json errors             = Json::object();
    for (const auto error : detail::error_classes) {
      errors[std::string(name(error))] = method.share(error);
    }
    Json& entry = result[method.name];
    entry       = {{"samples", method.rows.size()},
                   {"accuracy", method.share(tooldecode::ErrorClass::correct)},
                   {"ci95", {interval.low, interval.high}},
                   {"errors", errors},
                   {"seconds_per_sample", method.per_row(method.seconds())},
                   {"prompt_seconds_per_sample", method.per_row(method.prompt_seconds())},
                   {"passes_per_sample", method.per_row(method.passes())},
                   {"tokens_per_sample", method.per_row(method.tokens())}};
    if (const auto relative = report.relative_time(method)) entry["time_to_greedy"] = *relative;
    for (const auto& [name, rows] : groups) {
      entry["groups"][name] = {{"samples", rows.size()},
                               {"accuracy", detail::accuracy_of(method, rows)}};
    }
    if (!before || method.orders < 2) continue;
    const auto reduction = value_error_reduction(*before, method, report.seed);
    if (!reduction.share) continue;
    entry["value_error_reduction"] = {{"share", *reduction.share},
                                      {"ci95", {reduction.interval.low, reduction.interval.high}},
                                      {"mended", reduction.mended},
                                      {"added", reduction.added},
                                      {"p", reduction.p}};
  }
  return result;
}

Plot to_plot(const Report& report) {
  Plot plot{"Accuracy and time by decoding method",
            "time per sample relative to greedy",
            "correct answers, % (95 % interval)",
            {}};
  for (const Scores& method : report.scores) {
    const auto relative = report.relative_time(method);
    if (!relative) plot.x_label = "seconds per sample";
    const Interval interval = accuracy_interval(method, report.seed);
    const PlotPoint point{relative ? *relative : method.per_row(method.seconds()),
                          100 * method.share(tooldecode::ErrorClass::correct), 100 * interval.low,
                          100 * interval.high,
                          method.orders > 0 ? "oc " + std::to_string(method.orders) : ""};
    const std::string name = method.orders > 0 ? "tool-decoding" : method.name;
    if (plot.series.empty() || plot.series.back().name != name) plot.series.push_back({name, {}});
    plot.series.back().points.push_back(point);
  }
  return plot;
}

}  // namespace program
