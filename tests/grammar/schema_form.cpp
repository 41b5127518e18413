#include <random>
#include <string>

#include <tooldecode/grammar/schema_form.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("Decimals compare as the numbers they are") {
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

TEST_CASE("Multiples are exact in decimal digits") {
  const auto is = [](const char* a, const char* b) {
    return is_multiple(Decimal::parse(a), Decimal::parse(b));
  };
  CHECK(is("0.0075", "0.0001") == true);
  CHECK(is("0.00751", "0.0001") == false);
  CHECK(is("-9", "1.5") == true);
  CHECK(is("1e30", "7") == false);
  CHECK(is("1e30", "8") == true);
  CHECK_FALSE(is("1", "123456789123456789"));
  const auto common = common_multiple({Decimal::parse("0.4"), Decimal::parse("6")});
  REQUIRE(common);
  CHECK(*common == Decimal::parse("6"));
  CHECK(*common_multiple({Decimal::parse("0.25"), Decimal::parse("0.1")}) == Decimal::parse("0.5"));
  CHECK_FALSE(common_multiple({Decimal::parse("999999999"), Decimal::parse("999999998")}));
}
