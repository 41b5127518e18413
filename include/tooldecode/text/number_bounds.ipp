#pragma once

#include <tooldecode/text/number_bounds.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE const Decimal& largest_number() {
  static const Decimal largest = Decimal::parse("1.7976931348623158e308");
  return largest;
}

TOOLDECODE_INLINE const Decimal& smallest_number() {
  static const Decimal smallest = Decimal::parse("2.5e-324");
  return smallest;
}

}  // namespace tooldecode::text
