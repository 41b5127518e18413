/// \file
/// Occurrences: how often a part of a text repeats.
#pragma once

#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// Minimum and maximum number of occurrences, both included.
struct Occurrences {
  static constexpr std::uint32_t unbounded                       = ~std::uint32_t{0};
  std::uint32_t min                                              = 0;
  std::uint32_t max                                              = unbounded;
  friend bool operator==(const Occurrences&, const Occurrences&) = default;
};

}  // namespace tooldecode::text
