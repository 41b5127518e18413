/// \file
/// Decimal: an exact decimal number of any size, as schemas have it.
#pragma once

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
/// \par Errors      Error{malformed_schema} for a text that is not a JSON number;
///                  Error{limit_exceeded} if it has more than `max_digits` digits, or would have
///                  when written without an exponent
struct Decimal {
  static constexpr std::int64_t max_digits = 400;

  bool negative = false;   ///< never set for zero
  std::string digits;      ///< without zeros at either end; empty for zero
  std::int64_t scale = 0;  ///< digits before the point; if negative, zeros after the point

  /// Reads a JSON number, with or without an exponent.
  [[nodiscard]] static Decimal parse(std::string_view text);

  [[nodiscard]] bool is_zero() const noexcept { return digits.empty(); }
  [[nodiscard]] bool is_integral() const noexcept { return places() == 0; }
  [[nodiscard]] std::int64_t places() const noexcept;
  [[nodiscard]] Decimal magnitude() const;
  /// The number written without an exponent: `-12`, `0.05`.
  [[nodiscard]] std::string plain() const;
  /// Each number has one representation.
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

/// Less than, equal to or greater than zero, as a is compared with b.
[[nodiscard]] int compare(const Decimal& a, const Decimal& b);

/// A positive number as `digits` x 10^-`places`; `digits` does not end in 0.
struct Divisor {
  static constexpr std::uint64_t max = 1'000'000'000'000'000'000;

  std::uint64_t digits = 1;
  std::int64_t places  = 0;

  /// Nothing if the number has more than 18 digits.
  [[nodiscard]] static std::optional<Divisor> of(const Decimal& number);
};

/// Whether a number is a multiple of another; nothing if it has too many digits.
[[nodiscard]] std::optional<bool> is_multiple(const Decimal& number, const Decimal& of);

/// The least common multiple; nothing if it has too many digits.
[[nodiscard]] std::optional<Divisor> common_multiple(const std::vector<Decimal>& numbers);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/decimal.ipp>
#endif
