/// \file
/// NumberLimits: how far the texts of numbers go.
#pragma once

#include <cstdint>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

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
  bool plain_integers             = false;  ///< integers are digits alone: `3`, not `3.0` or `3e0`
  bool any_zeros                  = false;  ///< exponents begin with any number of zeros

  /// The same for writing: an integer is digits alone, and behind the point of a multiple with an
  /// exponent are zeros alone. A model that has written `3.5` for a multiple would have to find an
  /// exponent.
  [[nodiscard]] constexpr NumberLimits as_written() const noexcept {
    NumberLimits limits   = *this;
    limits.places         = 0;
    limits.plain_integers = true;
    return limits;
  }
  /// The same for judging texts: with what nobody writes.
  [[nodiscard]] constexpr NumberLimits as_judged() const noexcept {
    NumberLimits limits = *this;
    limits.any_zeros    = true;
    return limits;
  }

  friend bool operator==(const NumberLimits&, const NumberLimits&) = default;
};

}  // namespace tooldecode::text
