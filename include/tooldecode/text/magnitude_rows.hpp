/// \file
/// MagnitudeRows: the numbers of one sign between bounds, as states of a lexeme.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/text/decimal.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/exponent_rows.hpp>
#include <tooldecode/text/number_bounds.hpp>

namespace tooldecode::text {

/// Adds the texts of magnitudes to a lexeme's rows: digits, a point and digits, an exponent.
///
/// The digits of a number determine the allowed exponents. Its scale, and how its first digits
/// compare with those of a bound, give the bound's exponent or a neighbour of it. The places after
/// the point and the remainder by a divisor's digits give the least exponent that makes the number
/// a multiple. So the state after any digits knows an interval of exponents; a text without an
/// exponent is accepted if the interval contains 0.
///
/// Digits before the point that need no comparison with bounds form one loop, whose states are
/// boundaries.
///
/// \par Complexity  O(digits of the bounds, places that count) states, times a divisor's digits
///                  read as an integer
/// \par Threads     one at a time; refers to the rows and the limits
/// \par Errors      Error{limit_exceeded} for a divisor with too many digits
class MagnitudeRows {
 public:
  struct Requirements {
    std::optional<NumberBounds::Bound> min{};  ///< greater than zero
    NumberBounds::Bound max{};
    bool zero   = true;
    bool others = true;
    NumberKinds kinds{};
    std::optional<Divisor> divisor{};
  };
  static constexpr std::size_t max_states = 50'000;

  MagnitudeRows(Requirements wanted, const NumberLimits& limits, std::vector<Dfa::SparseRow>& rows,
                ExponentRows& exponents);

  /// Adds the edges of the first digit to a row, and the rows after them.
  void attach(Dfa::State from);

  /// Number of digits before the point that are compared with bounds.
  [[nodiscard]] std::int32_t compared_digits() const noexcept { return wide_; }

 private:
  static constexpr std::int32_t never = 1'000'000;  // larger than every exponent

  enum class Part : std::uint8_t { whole, point, places };
  struct Key {
    Part part          = Part::whole;
    bool zero          = false;
    std::int32_t scale = 0;  // as in Decimal; for zero: zeros after the point, negated
    std::int32_t count = 0;
    std::int8_t min = 0, max = 0;  // compared with the bounds: -1 less, 0 equal, 1 greater
    std::int32_t places = 0;
    std::uint32_t rest  = 0;       // remainder by the divisor
    std::int32_t from   = -never;  // least exponent that makes it a multiple
    std::int32_t until  = never;   // least exponent that makes it an integer
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Interval {
    std::int64_t from = -never, to = never;
  };

  [[nodiscard]] bool is_far(const Key& key) const { return !key.zero && key.scale > wide_; }
  [[nodiscard]] bool is_deep(const Key& key) const { return !key.zero && key.scale <= -deep_; }

  void prepare_divisor();
  [[noreturn]] static void too_large();

  [[nodiscard]] Interval within_bounds(const Key& key) const;
  [[nodiscard]] Interval exponents(const Key& key) const;
  // Maximum number of digits before the point.
  [[nodiscard]] std::int32_t longest() const;

  // Which mantissas may have an exponent: those with few digits before the point, and those of any
  // length that need no comparison with bounds.
  [[nodiscard]] bool takes_exponent(const Key& key) const;
  // The number of digits after the point after which, with a divisor, only zeros may follow.
  [[nodiscard]] std::int32_t counted_places(const Key& key) const;

  void compare(Key& key, char digit) const;
  void divide(Key& key, char digit) const;

  [[nodiscard]] std::optional<Key> after(Key key, char digit) const;

  // The key without data that no longer matters.
  [[nodiscard]] Key normal(Key key) const;

  [[nodiscard]] Dfa::State state(const Key& key);
  void fill(const Key& key, Dfa::State here);
  void add(Dfa::State from, char byte, Dfa::State to);

  Requirements wanted_;
  const NumberLimits& limits_;
  std::vector<Dfa::SparseRow>& rows_;
  ExponentRows& exponents_;
  bool integral_ = true, pointed_ = true;  // may have a point or exponent: integers; any numbers
  bool no_whole_           = false;        // integers may not have a point or exponent, others may
  std::int32_t wide_       = 1;            // larger scales are equivalent
  std::int32_t deep_       = 0;            // scales of -deep_ and less are equivalent
  std::int32_t finishing_  = 0;
  std::int32_t max_places_ = 0;
  std::vector<std::int32_t> raise_{};  // [divisor's digits] powers of ten to reach a multiple
  std::unordered_map<Key, Dfa::State, Hash> states_;
  std::vector<std::pair<Key, Dfa::State>> work_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/magnitude_rows.ipp>
#endif
