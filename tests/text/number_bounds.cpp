#include <cstdlib>
#include <limits>
#include <string>

#include <tooldecode/text/number_bounds.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("NumberKinds combines as sets do") {
  using enum NumberKinds;
  CHECK((any & integers) == integers);
  CHECK((integers & fractions) == none);
  CHECK(~any == none);
  CHECK((~digits & integers) == pointed);
  CHECK(has(integers, digits));
  CHECK_FALSE(has(fractions, integers));
}

TEST_CASE("largest_number and smallest_number are the limits of finite nonzero doubles") {
  CHECK(std::stod(largest_number().plain()) == std::numeric_limits<double>::max());
  CHECK(std::strtod("2.5e-324", nullptr) == std::numeric_limits<double>::denorm_min());
  CHECK(smallest_number() == Decimal::parse("2.5e-324"));
  CHECK(NumberBounds{} == NumberBounds{});
  CHECK_FALSE(NumberBounds{.multiples = {Decimal::parse("2")}} == NumberBounds{});
}
