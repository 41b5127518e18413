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

/// Adds the rows after a number's `e` to a lexeme: an optional sign and an exponent within bounds.
/// Leading zeros are allowed up to the length of the longest exponent, so 7, 07 and 007 are the
/// same exponent.
///
/// Equal rows are one state, so different bounds share what they have in common.
///
/// \par Complexity  O(digits of the bounds) rows per pair of bounds at most
/// \par Threads     one at a time; refers to the rows
class ExponentRows {
 public:
  /// \param min, greatest  limits of all exponents; bounds beyond them are clamped
  /// \param any_zeros      allows any number of leading zeros, else only up to the maximum length
  ExponentRows(std::vector<Dfa::SparseRow>& rows, std::int64_t min, std::int64_t greatest,
               bool any_zeros = false);

  /// The state after `e` for exponents from `from` to `to`; dead if there are none.
  [[nodiscard]] Dfa::State between(std::int64_t from, std::int64_t to);

 private:
  using Key = std::pair<bool, std::vector<std::tuple<std::uint8_t, std::uint8_t, Dfa::State>>>;

  static void add(Dfa::SparseRow& row, char byte, Dfa::State to);
  void add_digits(Dfa::SparseRow& row, std::size_t left, std::int64_t written, std::int64_t from,
                  std::int64_t to);
  Dfa::SparseRow first_digit(std::int64_t from, std::int64_t to);
  // The state after the value `written`, with up to `left` more digits.
  Dfa::State after(std::size_t left, std::int64_t written, std::int64_t from, std::int64_t to);
  // Accepts up to `left` digits of any value.
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
