#include <string_view>
#include <vector>

#include <tooldecode/text/magnitude_rows.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

namespace {

bool accepts(const MagnitudeRows::Requirements& wanted, std::string_view text) {
  const NumberLimits limits;
  std::vector<Dfa::SparseRow> rows(1);
  ExponentRows exponents(rows, limits.min_exponent, limits.greatest_exponent);
  MagnitudeRows magnitudes(wanted, limits, rows, exponents);
  magnitudes.attach(0);
  return test::accepts(Dfa(rows), text);
}

}  // namespace

TEST_CASE("MagnitudeRows accepts the numbers between its bounds with and without an exponent") {
  MagnitudeRows::Requirements some{
      .max = {Decimal::parse("120.5"), false}, .zero = false, .kinds = NumberKinds::any};
  some.min = {Decimal::parse("0.25"), true};
  for (const char* text : {"0.26", "0.2500001", "1", "120.5", "1.205e2", "2.6e-1", "9e1", "120"}) {
    INFO(text);
    CHECK(accepts(some, text));
  }
  for (const char* text : {"0", "0.25", "2.5e-1", "120.51", "1.2051e2", "9e2", "-1", "121", "00"}) {
    INFO(text);
    CHECK_FALSE(accepts(some, text));
  }
}

TEST_CASE("MagnitudeRows with a divisor accepts its multiples and throws on a large divisor") {
  MagnitudeRows::Requirements fives{.max   = {Decimal::parse("1e9"), false},
                                    .kinds = NumberKinds::integers};
  fives.divisor = Divisor{5, 0};
  for (const char* text : {"0", "5", "15", "1e1", "1.5e1", "1.25e3", "5.0", "2E6"}) {
    INFO(text);
    CHECK(accepts(fives, text));
  }
  for (const char* text : {"1", "12", "2.5", "1.2e1", "1.26e2", "5e-1", "2e9"}) {
    INFO(text);
    CHECK_FALSE(accepts(fives, text));
  }
  fives.divisor = Divisor{1'000'003, 0};
  CHECK_THROWS_AS(accepts(fives, "0"), Error);
}
