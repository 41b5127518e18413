/// \file
/// Numbers as lexemes: integers and decimals within bounds, exact on their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/text/decimal.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/exponent_rows.hpp>
#include <tooldecode/text/magnitude_rows.hpp>
#include <tooldecode/text/number_bounds.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::text {

/// A lexeme and the bounds on its units that belong to it.
struct NumberLexeme {
  DfaPointer dfa;
  Occurrences units{};
};

namespace detail {

// Gives every boundary state that does not accept a way to acceptance that counts no unit, so that
// a text with all the units that it may have can still be finished: a byte that leads nearer to
// acceptance leads to a copy of its state that is `closing`. Gives the most bytes to acceptance.
std::uint32_t make_finishable(std::vector<Dfa::SparseRow>& rows);

}  // namespace detail

/// Numbers within bounds, of some kinds, as JSON and Python alike write them.
///
/// Every number is finite as a double, and none is zero as a double where zero does not fit. The
/// digits before the point that no bound compares count as units; from every state, with every
/// count, some number can be reached. Where no number fits, nothing is accepted.
///
/// \par Complexity  as MagnitudeRows
/// \par Errors      Error{limit_exceeded} for a divisor of too many digits
[[nodiscard]] NumberLexeme number_lexeme(const NumberBounds& bounds, NumberKinds kinds,
                                         const NumberLimits& limits = {});

/// Any number, any integer, or any that is digits alone; one shared lexeme each for the whole
/// process.
[[nodiscard]] const NumberLexeme& any_number(NumberKinds kinds);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/number_lexeme.ipp>
#endif
