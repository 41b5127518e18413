/// \file
/// PrepareOptions: how many masks are computed ahead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tooldecode {

/// Bounds for Constraint::prepare.
struct PrepareOptions {
  std::size_t max_masks = 1'000;  ///< those that were known before count
  /// Steps of about 20 ns: in all, about 100 ms.
  std::uint64_t max_steps = 5'000'000;
  /// Stops it when it becomes true; null: it cannot be stopped.
  const std::atomic<bool>* cancelled = nullptr;
};

}  // namespace tooldecode
