/// \file
/// Occurrences: how often a part of a text may come, one after another.
#pragma once

#include <cstdint>

namespace tooldecode::text {

/// How often something may occur; both ends count.
struct Occurrences {
  static constexpr std::uint32_t unbounded                       = ~std::uint32_t{0};
  std::uint32_t min                                              = 0;
  std::uint32_t max                                              = unbounded;
  friend bool operator==(const Occurrences&, const Occurrences&) = default;
};

}  // namespace tooldecode::text
