/// \file
/// NumberLimits: limits on the spelling of numbers.
#pragma once

#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// Limits on the spelling of numbers. A number within the limits is accepted in every JSON
/// spelling. The defaults include everything that common writers write for doubles and 64-bit
/// integers. No number is infinite as a double, whatever the limits.
struct NumberLimits {
  /// Digits before the point, at most 300. With a divisor, some are reserved for reaching a
  /// multiple, so fewer are left: 38 or more with a divisor of four digits.
  std::uint32_t digits = 200;
  /// Digits before the point of a number with an exponent; the first is not zero: `1.5e3` has one.
  /// More digits, or a zero, are allowed only where no bound depends on their number; the exponent
  /// is then at most 308 - `digits`.
  std::uint32_t leading_digits = 1;
  /// Digits after the point of an integer or a multiple with an exponent. With a divisor that is
  /// not a power of ten, zeros at the end count, and many remainders reduce the limit.
  std::uint32_t places      = 20;
  std::int32_t min_exponent = -324, greatest_exponent = 308;
  /// Listed constants may have an exponent, besides their plain digits, if its magnitude is at
  /// least this: 10 is also 1e1.
  std::uint32_t constant_exponent = 1;
  bool plain_integers             = false;  ///< integers are digits only: `3`, not `3.0` or `3e0`
  bool any_zeros                  = false;  ///< exponents may have any number of leading zeros

  /// The limits for generation: integers are digits only, and a multiple with an exponent has only
  /// zeros after the point. After writing `3.5` for a multiple, a model would have to find a
  /// matching exponent.
  [[nodiscard]] constexpr NumberLimits as_written() const noexcept {
    NumberLimits limits   = *this;
    limits.places         = 0;
    limits.plain_integers = true;
    return limits;
  }
  /// The limits for checking texts: they also accept spellings that no writer produces.
  [[nodiscard]] constexpr NumberLimits as_judged() const noexcept {
    NumberLimits limits = *this;
    limits.any_zeros    = true;
    return limits;
  }

  friend bool operator==(const NumberLimits&, const NumberLimits&) = default;
};

}  // namespace tooldecode::text
