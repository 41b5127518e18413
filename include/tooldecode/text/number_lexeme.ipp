#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <tooldecode/text/exponent_rows.hpp>
#include <tooldecode/text/magnitude_rows.hpp>
#include <tooldecode/text/number_lexeme.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE std::uint32_t make_finishable(std::vector<Dfa::SparseRow>& rows) {
  constexpr std::uint32_t far = ~std::uint32_t{0};
  std::vector<std::uint32_t> bytes(rows.size(), far);  // to acceptance
  std::vector<std::vector<Dfa::State>> sources(rows.size());
  std::vector<Dfa::State> order;
  for (Dfa::State s = 0; s < rows.size(); ++s) {
    for (const Dfa::Edge& edge : rows[s].edges) sources[edge.to].push_back(s);
    if (rows[s].accepting) bytes[s] = 0, order.push_back(s);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Dfa::State from : sources[order[i]]) {
      if (bytes[from] == far) bytes[from] = bytes[order[i]] + 1, order.push_back(from);
    }
  }
  std::uint32_t max = 0;
  std::map<Dfa::State, Dfa::State> copies;
  const auto states = static_cast<Dfa::State>(rows.size());
  for (Dfa::State s = 0; s < states; ++s) {
    if (!rows[s].boundary || bytes[s] == far) continue;
    max = std::max(max, bytes[s]);
    for (Dfa::Edge& edge : rows[s].edges) {
      if (bytes[edge.to] >= bytes[s]) continue;
      const auto next = static_cast<Dfa::State>(states + copies.size());
      edge.to         = copies.try_emplace(edge.to, next).first->second;
    }
  }
  rows.resize(states + copies.size());
  for (const auto& [state, copy] : copies) {
    rows[copy]         = rows[state];
    rows[copy].closing = true;
  }
  return max;
}

}  // namespace tooldecode::text::detail

namespace tooldecode::text {

TOOLDECODE_INLINE NumberLexeme number_lexeme(const NumberBounds& bounds, NumberKinds kinds,
                                             const NumberLimits& limits) {
  const NumberBounds::Bound largest{largest_number(), false};
  NumberLimits within = limits;
  within.digits       = std::clamp<std::uint32_t>(limits.digits, 1, 300);
  const auto sign     = [](const std::optional<NumberBounds::Bound>& bound) {
    return !bound || bound->value.is_zero() ? 0 : bound->value.negative ? -1 : 1;
  };
  const int low = sign(bounds.minimum), high = sign(bounds.maximum);
  const auto excludes_zero = [](const std::optional<NumberBounds::Bound>& bound) {
    return bound && bound->value.is_zero() && bound->exclusive;
  };
  const bool is_integral         = !has(kinds, NumberKinds::fractions);
  std::vector<Decimal> multiples = bounds.multiples;
  if (is_integral && has(kinds, NumberKinds::pointed)) multiples.push_back(Decimal::parse("1"));
  MagnitudeRows::Requirements all{.max = largest, .kinds = kinds};
  if (!multiples.empty()) {
    all.divisor = common_multiple(multiples);
    if (!all.divisor) {
      throw Error(Errc::limit_exceeded, "/multipleOf", "divisors with too many digits");
    }
  }
  all.zero = has(kinds, NumberKinds::integers) && low <= 0 && high >= 0 &&
             !excludes_zero(bounds.minimum) && !excludes_zero(bounds.maximum);
  // The positive numbers, and the negative ones by magnitude.
  const auto wanted = [&](const auto& min, const auto& max, bool others) {
    const auto magnitude = [](const NumberBounds::Bound& bound) {
      return NumberBounds::Bound{bound.value.magnitude(), bound.exclusive};
    };
    MagnitudeRows::Requirements result = all;
    result.others                      = others;
    if (!others) return result;
    if (min) result.min = magnitude(*min);
    if (!min && !all.zero && !is_integral) result.min = {smallest_number(), false};
    if (max && compare(magnitude(*max).value, largest.value) <= 0) result.max = magnitude(*max);
    return result;
  };
  const std::optional<NumberBounds::Bound> none;
  std::vector<Dfa::SparseRow> rows(2);
  ExponentRows exponents(rows, within.min_exponent, within.greatest_exponent, within.any_zeros);
  MagnitudeRows above(
      wanted(low > 0 ? bounds.minimum : none, bounds.maximum, !bounds.maximum || high > 0), within,
      rows, exponents);
  above.attach(0);
  std::int32_t compared = above.compared_digits();
  if (!bounds.minimum && !bounds.maximum) {
    rows[1].edges = rows[0].edges;
  } else {
    MagnitudeRows below(
        wanted(high < 0 ? bounds.maximum : none, bounds.minimum, !bounds.minimum || low < 0),
        within, rows, exponents);
    below.attach(1);
    compared = std::max(compared, below.compared_digits());
  }
  rows[0].edges.push_back({'-', '-', 1});
  const std::uint32_t bytes   = detail::make_finishable(rows);
  const std::uint32_t to_come = all.divisor ? bytes : 0;
  const std::uint32_t before  = static_cast<std::uint32_t>(compared) + 1 + to_come;
  auto dfa                    = std::make_shared<const Dfa>(rows);
  bool has_boundary           = false;
  for (Dfa::State s = 0; s < dfa->size(); ++s) has_boundary |= dfa->boundary(s);
  Occurrences units;
  if (has_boundary) {
    // Completing a number may take `to_come` digits between two counted units.
    units.max = before < within.digits ? (within.digits - before) / (1 + to_come) : 0;
  }
  return {std::move(dfa), units};
}

TOOLDECODE_INLINE const NumberLexeme& any_number(NumberKinds kinds) {
  static const NumberLexeme numbers  = number_lexeme({}, NumberKinds::any);
  static const NumberLexeme integers = number_lexeme({}, NumberKinds::integers);
  static const NumberLexeme digits   = number_lexeme({}, NumberKinds::digits);
  TOOLDECODE_ASSERT(kinds == NumberKinds::any || kinds == NumberKinds::integers ||
                    kinds == NumberKinds::digits);
  if (kinds == NumberKinds::any) return numbers;
  return kinds == NumberKinds::digits ? digits : integers;
}

}  // namespace tooldecode::text
