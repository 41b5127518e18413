/// \file
/// Counters and histograms in Prometheus' text format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

namespace program {

/// The text of a /metrics page, one metric family after another.
class MetricsText {
 public:
  /// A family with one value; names of counters end in `_total`.
  void value(std::string_view name, std::string_view help, double value) {
    const bool counts = name.ends_with("_total");
    family(name, help, counts ? "counter" : "gauge");
    text_ << prefix << name << ' ' << value << '\n';
  }
  void family(std::string_view name, std::string_view help, std::string_view type) {
    text_ << "# HELP " << prefix << name << ' ' << help << "\n# TYPE " << prefix << name << ' '
          << type << '\n';
  }
  /// \param labels  `a="b",c="d"`, with values that need no escapes
  void sample(std::string_view name, std::string_view labels, double value) {
    text_ << prefix << name << '{' << labels << "} " << value << '\n';
  }
  void plain_sample(std::string_view name, double value) {
    text_ << prefix << name << ' ' << value << '\n';
  }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  static constexpr std::string_view prefix = "tooldecode_";

  static std::ostringstream precise() {
    std::ostringstream text;
    text.precision(15);
    return text;
  }
  std::ostringstream text_ = precise();
};

/// Counts durations below each of several bounds; thread-safe.
class DurationHistogram {
 public:
  void observe(double seconds) {
    const std::lock_guard lock(mutex_);
    std::size_t bucket = 0;
    while (bucket < bounds.size() && seconds > bounds[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ += seconds;
  }
  void write(MetricsText& page, const std::string& name, std::string_view help) const {
    const std::lock_guard lock(mutex_);
    page.family(name, help, "histogram");
    double below = 0;
    for (std::size_t i = 0; i <= bounds.size(); ++i) {
      std::ostringstream label;
      i < bounds.size() ? label << "le=\"" << bounds[i] << '"' : label << "le=\"+Inf\"";
      below += static_cast<double>(counts_[i]);
      page.sample(name + "_bucket", label.str(), below);
    }
    page.plain_sample(name + "_sum", sum_);
    page.plain_sample(name + "_count", below);
  }

 private:
  static constexpr std::array bounds{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0};

  mutable std::mutex mutex_;
  std::array<std::uint64_t, bounds.size() + 1> counts_{};
  double sum_ = 0;
};

/// Counters of HTTP requests; thread-safe.
class HttpMetrics {
 public:
  void count(std::string_view path, int status) {
    const std::lock_guard lock(mutex_);
    ++requests_["path=\"" + std::string(path) + "\",status=\"" + std::to_string(status) + '"'];
  }
  void write(MetricsText& page) const {
    const std::lock_guard lock(mutex_);
    page.family("http_requests_total", "HTTP requests by path and status.", "counter");
    for (const auto& [labels, count] : requests_) {
      page.sample("http_requests_total", labels, static_cast<double>(count));
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> requests_;
};

}  // namespace program
