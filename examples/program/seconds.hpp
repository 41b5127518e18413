/// \file
/// milliseconds: seconds, as options and requests give them.
#pragma once

#include <chrono>
#include <cstdint>

namespace program {

/// A number of seconds, in whole milliseconds.
[[nodiscard]] inline std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

}  // namespace program
