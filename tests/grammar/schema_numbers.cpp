#include <string>
#include <string_view>

#include <tooldecode/grammar/schema_numbers.hpp>

#include <support/catch.hpp>
#include <support/slow_matcher.hpp>

using namespace tooldecode;

namespace {

bool accepts(const NumberForm& form, std::string_view text) {
  Grammar grammar;
  const NodeId node = SchemaNumbers::node(grammar, form);
  return slow::matches(grammar, node, text);
}
NumberForm at_least(const char* bound) {
  NumberForm form;
  form.bounds.minimum = {Decimal::parse(bound), false};
  return form;
}

}  // namespace

TEST_CASE("A number has the spellings of common writers") {
  const auto of = [](const char* text) { return SchemaNumbers::spellings(Decimal::parse(text)); };
  CHECK(of("3") == std::vector<std::string>{"3", "3.0"});
  CHECK(of("-2.50") == std::vector<std::string>{"-2.5"});
  CHECK(of("0") == std::vector<std::string>{"0", "0.0", "-0", "-0.0"});
  CHECK(of("1e-7") == std::vector<std::string>{"0.0000001", "1e-07"});
  CHECK(of("1e300").back() == "1e+300");
}

TEST_CASE("Exponents where no bound has to compare them") {
  for (const char* text :
       {"1e-06", "2.5E-7", "1e-5", "9e-99", "1e-299", "1e16", "3.5e+20", "2e299"}) {
    INFO(text);
    CHECK(accepts(at_least("0"), text));
    CHECK_FALSE(accepts(at_least("0"), '-' + std::string(text)));
  }
  for (const char* text : {"1e-4", "1e4", "1e15", "1e300", "1e-300", "0e-9", "12e-9", "1e"}) {
    INFO(text);
    CHECK_FALSE(accepts(at_least("0"), text));
  }
  CHECK_FALSE(accepts(at_least("0.001"), "1e-06"));
  CHECK_FALSE(accepts(at_least("1e17"), "1e16"));
  CHECK(accepts(at_least("-1"), "-1e-09"));
}

TEST_CASE("Numbers that are no integers") {
  NumberForm form = at_least("2");
  form.grain      = NumberForm::Grain::fraction;
  for (const char* text : {"2.5", "3.10", "10.01"}) CHECK(accepts(form, text));
  for (const char* text : {"2", "2.0", "1.5", "3.", "25e-1"}) CHECK_FALSE(accepts(form, text));
  CHECK(accepts({.grain = NumberForm::Grain::fraction}, "-0.5"));
}
