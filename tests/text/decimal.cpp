#include <optional>
#include <random>
#include <string>

#include <tooldecode/text/decimal.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;

TEST_CASE("Decimal compares as the number that its text denotes") {
  std::mt19937 random(1);
  const auto make = [&] { return (static_cast<int>(random() % 4001) - 2000) / 16.0; };
  for (int i = 0; i < 2000; ++i) {
    const double a = make(), b = make();
    const auto parse = [](double x) { return Decimal::parse(std::to_string(x)); };
    INFO(a << " and " << b);
    CHECK((compare(parse(a), parse(b)) < 0) == (a < b));
    CHECK((parse(a) == parse(b)) == (a == b));
  }
  CHECK(compare(Decimal::parse("-0"), Decimal::parse("0.00")) == 0);
}

TEST_CASE(
    "is_multiple decides exactly for decimal numbers of any exponent and refuses long divisors") {
  const auto is = [](const char* a, const char* b) {
    return is_multiple(Decimal::parse(a), Decimal::parse(b));
  };
  CHECK(is("0.0075", "0.0001") == true);
  CHECK(is("0.00751", "0.0001") == false);
  CHECK(is("-9", "1.5") == true);
  CHECK(is("1e30", "7") == false);
  CHECK(is("1e30", "8") == true);
  CHECK(is("5e-324", "1") == false);
  CHECK(is("1e300", "1e-300") == true);
  CHECK(is("3e300", "1.5e-300") == true);
  CHECK(is("4e300", "1.5e-300") == false);
  CHECK_FALSE(is("1", "1234567890123456789"));
}

TEST_CASE("common_multiple returns the least common multiple, or nothing if it is too large") {
  const auto common = [](const char* a, const char* b) -> std::optional<std::string> {
    const auto divisor = common_multiple({Decimal::parse(a), Decimal::parse(b)});
    if (!divisor) return std::nullopt;
    return std::to_string(divisor->digits) + " / 10^" + std::to_string(divisor->places);
  };
  CHECK(common("0.4", "6") == "6 / 10^0");
  CHECK(common("0.25", "0.1") == "5 / 10^1");
  CHECK(common("1", "1.5") == "3 / 10^0");
  CHECK(common("1e-300", "1") == "1 / 10^0");
  CHECK(common("4e10", "6e8") == "12 / 10^-10");
  CHECK_FALSE(common("999999999999", "999999999998"));
}

TEST_CASE("Decimal::parse reads exponents and throws on malformed or too large numbers") {
  const Decimal small = Decimal::parse("-12.50e-3");
  CHECK(small.negative);
  CHECK(small.digits == "125");
  CHECK(small.scale == -1);
  CHECK(small.plain() == "-0.0125");
  CHECK(Decimal::parse("1e3").plain() == "1000");
  CHECK(Decimal::parse("120.50").plain() == "120.5");
  CHECK(Decimal::parse("0.0").is_zero());
  CHECK_FALSE(Decimal::parse("-0.0e7").negative);
  CHECK(Decimal::parse("1e3").is_integral());
  CHECK_FALSE(Decimal::parse("1e-3").is_integral());
  CHECK(Decimal::parse("5e-324").places() == 324);
  const auto code = [](const char* text) -> std::optional<Errc> {
    try {
      (void)Decimal::parse(text);
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  for (const char* none : {"abc", "", "1e", "1.", ".5", "1e+", "--1", "1 "}) {
    INFO(none);
    CHECK(code(none) == Errc::malformed_schema);
  }
  for (const char* large : {"1e99999999999999999999", "1e5000", "1e-5000"}) {
    CHECK(code(large) == Errc::limit_exceeded);
  }
  CHECK_FALSE(code("1.7976931348623157e+308"));
  CHECK_FALSE(code("4.9406564584124654e-324"));
}
