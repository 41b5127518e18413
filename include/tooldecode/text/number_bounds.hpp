/// \file
/// NumberBounds: what a lexeme of numbers has to hold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tooldecode/text/decimal.hpp>
#include <tooldecode/text/number_limits.hpp>

namespace tooldecode::text {

/// Lower and upper bound of a number, and what it is a multiple of, all of them; nothing is no
/// bound.
struct NumberBounds {
  struct Bound {
    Decimal value{};
    bool exclusive = false;
    /// One bound: one number, with or without it.
    friend bool operator==(const Bound&, const Bound&) = default;
  };
  std::optional<Bound> minimum{};
  std::optional<Bound> maximum{};
  std::vector<Decimal> multiples{};  ///< each is greater than zero
  friend bool operator==(const NumberBounds&, const NumberBounds&) = default;
};

/// The greatest magnitude of all numbers: rounded, it is the largest double.
[[nodiscard]] const Decimal& largest_number();

/// The least magnitude that is not rounded to zero.
[[nodiscard]] const Decimal& smallest_number();

/// A set of kinds of numbers, by value and by spelling.
enum class NumberKinds : std::uint8_t {
  none      = 0,
  digits    = 1,  ///< integers of digits alone: 3
  pointed   = 2,  ///< integers with a point or an exponent: 3.0, 3e0
  integers  = 3,  ///< numbers without a fractional part
  fractions = 4,  ///< all other numbers
  any       = 7,
};
/// The kinds that both have.
[[nodiscard]] constexpr NumberKinds operator&(NumberKinds a, NumberKinds b) noexcept {
  return static_cast<NumberKinds>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
/// The other kinds.
[[nodiscard]] constexpr NumberKinds operator~(NumberKinds a) noexcept {
  return static_cast<NumberKinds>(~static_cast<unsigned>(a) & 7U);
}
/// Whether some kind is in both sets.
[[nodiscard]] constexpr bool has(NumberKinds set, NumberKinds kinds) noexcept {
  return (set & kinds) != NumberKinds::none;
}

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/number_bounds.ipp>
#endif
