/// \file
/// Seconds, as options and requests give them, and since a point in time.
#pragma once

#include <chrono>
#include <cstdint>

namespace program {

/// A number of seconds, in whole milliseconds.
[[nodiscard]] inline std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace program
