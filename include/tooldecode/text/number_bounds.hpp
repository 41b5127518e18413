/// \file
/// NumberBounds: what a lexeme of numbers has to hold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tooldecode/text/decimal.hpp>

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

/// How far the texts of numbers go. What is within the limits and conforms is accepted in every
/// spelling that JSON has; the defaults hold all that common writers write for doubles and for
/// 64-bit integers. Nothing is infinite as a double, whatever the limits are.
struct NumberLimits {
  /// Digits before the point, at most 300. Beside a divisor some of them are kept for reaching a
  /// multiple, so that there are fewer: with a divisor of four digits, 38 and more.
  std::uint32_t digits = 200;
  /// Digits before the point of a number with an exponent, the first of which is no zero: `1.5e3`
  /// has one. More, or a zero, only where no bound has to know how many they are; the exponent is
  /// then at most 308 less `digits`.
  std::uint32_t leading_digits = 1;
  /// Digits behind the point of an integer or a multiple with an exponent; beside a divisor other
  /// than a power of ten zeros at their end count, and many remainders leave fewer.
  std::uint32_t places      = 20;
  std::int32_t min_exponent = -324, greatest_exponent = 308;
  /// Constants, which are listed, have an exponent besides their plain digits where it is at least
  /// so far from zero: 10 is 1e1 too.
  std::uint32_t constant_exponent = 1;

  /// The same for writing: behind the point of an integer or a multiple with an exponent are zeros
  /// alone. A model that has written `3.5` for an integer would have to find an exponent.
  [[nodiscard]] constexpr NumberLimits as_written() const noexcept {
    NumberLimits limits = *this;
    limits.places       = 0;
    return limits;
  }

  friend bool operator==(const NumberLimits&, const NumberLimits&) = default;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/number_bounds.ipp>
#endif
