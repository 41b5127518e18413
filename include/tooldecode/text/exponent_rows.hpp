/// \file
/// ExponentRows: the exponents between two bounds, as states of a lexeme.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

/// Adds to a lexeme's rows what may follow the `e` of a number: a sign or none, and the digits of
/// an exponent within bounds. Zeros may lead as long as the digits are no more than the longest
/// exponent has, so that 7, 07 and 007 are one exponent.
///
/// Bounds that differ share what they have in common: equal rows are one state.
///
/// \par Complexity  O(digits of the bounds) rows per pair of bounds at most
/// \par Threads     one at a time; refers to the rows
class ExponentRows {
 public:
  /// \param min, greatest  of all exponents: bounds beyond them are these
  /// \param any_zeros      any number of zeros may lead; else as many as bring it to the most digits
  ExponentRows(std::vector<Dfa::SparseRow>& rows, std::int64_t min, std::int64_t greatest,
               bool any_zeros = false);

  /// The state behind the `e` of an exponent from `from` to `to`; dead where there is none.
  [[nodiscard]] Dfa::State between(std::int64_t from, std::int64_t to);

 private:
  using Key = std::pair<bool, std::vector<std::tuple<std::uint8_t, std::uint8_t, Dfa::State>>>;

  static void add(Dfa::SparseRow& row, char byte, Dfa::State to);
  void add_digits(Dfa::SparseRow& row, std::size_t left, std::int64_t written, std::int64_t from,
                  std::int64_t to);
  // The first digit of an exponent without its sign.
  Dfa::SparseRow first_digit(std::int64_t from, std::int64_t to);
  // The state where `written` stands and up to `left` more digits may follow.
  Dfa::State after(std::size_t left, std::int64_t written, std::int64_t from, std::int64_t to);
  // Any digits, up to so many.
  Dfa::State free(std::size_t left);

  Dfa::State intern(Dfa::SparseRow row);

  std::vector<Dfa::SparseRow>& rows_;
  std::int64_t least_, greatest_;
  std::size_t digits_;
  bool any_zeros_;
  std::map<std::pair<std::int64_t, std::int64_t>, Dfa::State> known_;
  std::map<Key, Dfa::State> interned_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/exponent_rows.ipp>
#endif
