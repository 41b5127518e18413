/// \file
/// NumberBounds: the constraints on a lexeme of numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tooldecode/text/decimal.hpp>
#include <tooldecode/text/number_limits.hpp>

namespace tooldecode::text {

/// The lower and upper bound of a number, and its divisors. An empty optional means no bound.
struct NumberBounds {
  struct Bound {
    Decimal value{};
    bool exclusive = false;
    /// One bound, inclusive or exclusive.
    friend bool operator==(const Bound&, const Bound&) = default;
  };
  std::optional<Bound> minimum{};
  std::optional<Bound> maximum{};
  std::vector<Decimal> multiples{};  ///< each is positive
  friend bool operator==(const NumberBounds&, const NumberBounds&) = default;
};

/// The greatest magnitude of all numbers; it rounds to the largest double.
[[nodiscard]] const Decimal& largest_number();

/// The smallest magnitude that does not round to zero.
[[nodiscard]] const Decimal& smallest_number();

/// A set of kinds of numbers, by value and spelling.
enum class NumberKinds : std::uint8_t {
  none      = 0,
  digits    = 1,  ///< integers of digits only: 3
  pointed   = 2,  ///< integers with a point or an exponent: 3.0, 3e0
  integers  = 3,  ///< numbers without a fractional part
  fractions = 4,
  any       = 7,
};
/// The intersection of two sets.
[[nodiscard]] constexpr NumberKinds operator&(NumberKinds a, NumberKinds b) noexcept {
  return static_cast<NumberKinds>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
/// The complement of a set.
[[nodiscard]] constexpr NumberKinds operator~(NumberKinds a) noexcept {
  return static_cast<NumberKinds>(~static_cast<unsigned>(a) & 7U);
}
/// Whether the sets have a kind in common.
[[nodiscard]] constexpr bool has(NumberKinds set, NumberKinds kinds) noexcept {
  return (set & kinds) != NumberKinds::none;
}

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/number_bounds.ipp>
#endif
