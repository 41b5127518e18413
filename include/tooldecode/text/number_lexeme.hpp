/// \file
/// Number lexemes: integers and decimals within bounds, exact by value.
#pragma once

#include <cstdint>
#include <vector>

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/number_bounds.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::text {

/// A lexeme, and the limits on its units.
struct NumberLexeme {
  DfaPointer dfa;
  Occurrences units{};
};

namespace detail {

// Gives every non-accepting boundary state a path to acceptance that counts no unit, so that a text
// with the maximum number of units can still be completed: bytes that lead closer to acceptance
// lead to a `closing` copy of their state. Returns the maximum number of bytes to acceptance.
std::uint32_t make_finishable(std::vector<Dfa::SparseRow>& rows);

}  // namespace detail

/// Numbers within bounds, of some kinds, in the spellings that JSON and Python share.
///
/// Every number is finite as a double, and none rounds to zero if zero is not allowed. Digits
/// before the point that need no comparison with bounds count as units; from every state, with
/// every count, some number can be reached. If no number fits, the lexeme accepts nothing.
///
/// \par Complexity  as MagnitudeRows
/// \par Errors      Error{limit_exceeded} for a divisor with too many digits
[[nodiscard]] NumberLexeme number_lexeme(const NumberBounds& bounds, NumberKinds kinds,
                                         const NumberLimits& limits = {});

/// Any number, any integer, or any integer of digits only. Each is one lexeme, shared by the whole
/// process.
[[nodiscard]] const NumberLexeme& any_number(NumberKinds kinds);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/number_lexeme.ipp>
#endif
