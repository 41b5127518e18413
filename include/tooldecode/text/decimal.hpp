/// \file
/// Decimal: a number of a schema, exact, whatever its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>

namespace tooldecode::text {

/// A decimal number: sign x 0.digits x 10^scale.
///
/// \par Complexity  O(digits)
/// \par Errors      Error{malformed_schema} for a text that is no JSON number,
///                  Error{limit_exceeded} where it has more than `max_digits` digits, or is so
///                  near to zero or so far from it that its plain digits would be more
struct Decimal {
  static constexpr std::int64_t max_digits = 400;

  bool negative = false;   ///< never of zero
  std::string digits;      ///< without zeros at either end; none for zero
  std::int64_t scale = 0;  ///< digits before the point, or, below zero, zeros behind it

  /// Reads a JSON number, exponent included.
  [[nodiscard]] static Decimal parse(std::string_view text);

  [[nodiscard]] bool is_zero() const noexcept { return digits.empty(); }
  [[nodiscard]] bool is_integral() const noexcept { return places() == 0; }
  /// Digits behind the point.
  [[nodiscard]] std::int64_t places() const noexcept;
  [[nodiscard]] Decimal magnitude() const;
  /// The number without an exponent: `-12`, `0.05`.
  [[nodiscard]] std::string plain() const;
  /// The same number, since each has one form.
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

/// Less than, equal to or greater than zero as a is to b.
[[nodiscard]] int compare(const Decimal& a, const Decimal& b);

/// A number greater than zero as `digits` x 10^-`places`, with digits that do not end in 0.
struct Divisor {
  static constexpr std::uint64_t max = 1'000'000'000'000'000'000;

  std::uint64_t digits = 1;
  std::int64_t places  = 0;

  /// Nothing where the number has more than 18 digits.
  [[nodiscard]] static std::optional<Divisor> of(const Decimal& number);
};

/// Whether a number is a multiple of another; nothing where that has too many digits to tell.
[[nodiscard]] std::optional<bool> is_multiple(const Decimal& number, const Decimal& of);

/// The least number that is a multiple of all of them; nothing where it has too many digits.
[[nodiscard]] std::optional<Divisor> common_multiple(const std::vector<Decimal>& numbers);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/decimal.ipp>
#endif
