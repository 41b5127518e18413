/// \file
/// Progress: a progress bar on stderr for work that takes longer than two seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <string>

#include <unistd.h>

namespace program {

/// Counts rows and shows how many are done, the speed, and the remaining time. On a terminal the
/// line is redrawn twice a second; elsewhere a line is printed every ten seconds.
class Progress {
 public:
  explicit Progress(std::size_t rows) : rows_(rows), drawn_(start_) {}

  void advance() {
    ++done_;
    const auto now = Clock::now();
    if (now - start_ < std::chrono::seconds(2) || now - drawn_ < pause_) return;
    drawn_ = now;
    draw(std::chrono::duration<double>(now - start_).count());
  }
  void finish() const {
    if (drawn_ == start_) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (is_terminal_) std::cerr << "\r\x1b[K";
    std::cerr << done_ << " rows in " << clock_text(seconds) << '\n';
  }

 private:
  using Clock = std::chrono::steady_clock;

  static std::string clock_text(double seconds) {
    const auto whole        = static_cast<std::size_t>(seconds + 0.5);
    const std::string after = std::to_string(whole % 60);
    return std::to_string(whole / 60) + (after.size() < 2 ? ":0" : ":") + after;
  }
  void draw(double seconds) const {
    constexpr std::size_t width = 30;
    const double rate           = static_cast<double>(done_) / seconds;
    const std::size_t full      = width * done_ / rows_;
    char speed[32];
    std::snprintf(speed, sizeof speed, "%.1f", rate);
    std::cerr << (is_terminal_ ? "\r\x1b[K" : "") << '[' << std::string(full, '#')
              << std::string(width - full, '.') << "] " << done_ << " of " << rows_ << " rows, "
              << speed << " rows/s, " << clock_text(static_cast<double>(rows_ - done_) / rate)
              << " left" << (is_terminal_ ? "" : "\n") << std::flush;
  }

  std::size_t rows_ = 0, done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_;
  bool is_terminal_ = isatty(STDERR_FILENO) == 1;
  std::chrono::milliseconds pause_{is_terminal_ ? 500 : 10'000};
};

}  // namespace program
