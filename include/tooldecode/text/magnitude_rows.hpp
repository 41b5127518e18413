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

/// Adds to a lexeme's rows the texts of magnitudes: digits, a point and digits, an exponent.
///
/// A number's digits, before and behind the point, say which exponents may follow: its scale and
/// how its first digits compare with a bound's give the bound's exponent or the one beside it; the
/// places behind the point and the remainder by a divisor's digits give the least exponent that
/// makes it a multiple. So the states after any digits know an interval of exponents; a text
/// without one is accepted where the interval has 0.
///
/// Digits before the point that no bound has to compare are one loop, whose states are boundaries.
///
/// \par Complexity  O(digits of the bounds, places that count) states, times a divisor's digits
///                  read as an integer
/// \par Threads     one at a time; refers to the rows and the limits
/// \par Errors      Error{limit_exceeded} for a divisor of too many digits
class MagnitudeRows {
 public:
  /// The numbers that are wanted.
  struct Wanted {
    std::optional<NumberBounds::Bound> min{};  ///< greater than zero
    NumberBounds::Bound max{};
    bool zero   = true;
    bool others = true;  ///< numbers other than zero
    NumberKinds kinds{};
    std::optional<Divisor> divisor{};
  };
  static constexpr std::size_t max_states = 50'000;

  MagnitudeRows(Wanted wanted, const NumberLimits& limits, std::vector<Dfa::SparseRow>& rows,
                ExponentRows& exponents);

  /// Adds the edges of the first digit to a row, and the rows behind them.
  void attach(Dfa::State from);

  /// Digits before the point that bounds compare one by one.
  [[nodiscard]] std::int32_t compared_digits() const noexcept { return wide_; }
  /// The digits that may still be wanted, from any state of the loop, for a multiple.
  [[nodiscard]] std::int32_t finishing_digits() const noexcept { return finishing_; }

 private:
  static constexpr std::int32_t never = 1'000'000;  // beyond every exponent

  enum class Part : std::uint8_t { whole, point, places };
  struct Key {
    Part part          = Part::whole;
    bool zero          = false;
    std::int32_t scale = 0;        // as Decimal's; for zero: zeros behind the point, negative
    std::int32_t count = 0;        // digits that have been compared with bounds
    std::int8_t min = 0, max = 0;  // the digits against the bounds': -1 less, 0 equal, 1 greater
    std::int32_t places = 0;       // digits behind the point
    std::uint32_t rest  = 0;       // by the divisor
    std::int32_t from   = -never;  // the least exponent that makes it a multiple
    std::int32_t until  = never;   // the least exponent that makes it an integer
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

  // The exponents that bounds leave.
  [[nodiscard]] Interval within_bounds(const Key& key) const;
  [[nodiscard]] Interval exponents(const Key& key) const;
  // The most digits before the point.
  [[nodiscard]] std::int32_t longest() const;

  // Which mantissas take an exponent: those with few digits before the point, and those of any
  // size where no bound has to know which.
  [[nodiscard]] bool takes_exponent(const Key& key) const;
  // Digits behind the point, beyond which only zeros may follow where there is a divisor.
  [[nodiscard]] std::int32_t counted_places(const Key& key) const;

  void compare(Key& key, char digit) const;
  void divide(Key& key, char digit) const;

  [[nodiscard]] std::optional<Key> after(Key key, char digit) const;

  // The same key without what can no longer matter.
  [[nodiscard]] Key normal(Key key) const;

  [[nodiscard]] Dfa::State state(const Key& key);
  void fill(const Key& key, Dfa::State here);
  void add(Dfa::State from, char byte, Dfa::State to);

  Wanted wanted_;
  const NumberLimits& limits_;
  std::vector<Dfa::SparseRow>& rows_;
  ExponentRows& exponents_;
  bool integral_ = true, pointed_ = true;  // with a point or an exponent: integers; any numbers
  bool no_whole_           = false;        // with a point or an exponent: no integers
  std::int32_t wide_       = 1;            // scales above are alike
  std::int32_t deep_       = 0;            // scales of minus so much and below are alike
  std::int32_t finishing_  = 0;
  std::int32_t max_places_ = 0;
  std::vector<std::int32_t> raise_{};  // [divisor's digits] powers of ten to be a multiple of them
  std::unordered_map<Key, Dfa::State, Hash> states_;
  std::vector<std::pair<Key, Dfa::State>> work_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/magnitude_rows.ipp>
#endif
