#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/schema/numbers.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using namespace tooldecode::text;

namespace {

// Whether a text is a spelling of a constant.
bool has_text(const char* number, std::string_view text, NumberKinds kinds = NumberKinds::any) {
  for (const auto& one : Numbers::beginnings(Decimal::parse(number), kinds, {})) {
    if (!text.starts_with(one.text)) continue;
    if (test::accepts(*Numbers::rest(one, {}), text.substr(one.text.size()))) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("Numbers accepts a constant in each plain or exponent spelling of its value") {
  for (const char* text : {"3", "3.0", "3.000", "3e0", "3.0E+00"}) CHECK(has_text("3", text));
  for (const char* text : {"30", "3.01", "3e1", "3.", "3e", "-3"}) CHECK_FALSE(has_text("3", text));
  for (const char* text : {"0", "-0", "0.0", "-0.00e7", "0E-300"}) CHECK(has_text("0", text));
  for (const char* text : {"1000", "1e3", "1.0E3", "1e+003", "1000.0e0"}) {
    CHECK(has_text("1e3", text));
  }
  CHECK_FALSE(has_text("1000", "1e-3"));
  for (const char* text : {"0.0000001", "1e-7", "1e-07", "1.0E-7"}) CHECK(has_text("1e-7", text));
  CHECK(has_text("5e-324", "5e-324"));
  CHECK(has_text("-1.7976931348623157e308", "-1.7976931348623157e+308"));
  CHECK_FALSE(has_text("1.8e308", "1.8e308"));
  CHECK(has_text("18446744073709551617", "18446744073709551617"));
  CHECK(has_text("18446744073709551617", "1.8446744073709551617e19"));
  CHECK_FALSE(has_text("18446744073709551617", "18446744073709552000"));
}

TEST_CASE("Numbers accepts a constant of one kind only in spellings of that kind") {
  CHECK(has_text("3", "3", NumberKinds::digits));
  CHECK_FALSE(has_text("3", "3.0", NumberKinds::digits));
  CHECK_FALSE(has_text("1000", "1e3", NumberKinds::digits));
  CHECK_FALSE(has_text("3", "3", NumberKinds::pointed));
  CHECK(has_text("3", "3.0", NumberKinds::pointed));
}

TEST_CASE("Numbers::spellings lists only spellings that are accepted") {
  for (const char* number : {"3", "0", "-2.50", "1e-7", "1e300", "12345678", "5e-324"}) {
    const auto texts = Numbers::spellings(Decimal::parse(number), NumberKinds::any, {});
    INFO(number);
    const std::string plain = Decimal::parse(number).plain();
    CHECK((std::find(texts.begin(), texts.end(), plain) != texts.end()) == (plain.size() < 200));
    for (const std::string& text : texts) CHECK(has_text(number, text));
  }
  const auto texts = Numbers::spellings(Decimal::parse("1e-7"), NumberKinds::any, {});
  for (const char* text : {"1e-07", "1e-7", "1.0E-7", "1E-007"}) {
    CHECK(std::find(texts.begin(), texts.end(), text) != texts.end());
  }
  CHECK(Numbers::spellings(Decimal::parse("2000"), NumberKinds::digits, {}) ==
        std::vector<std::string>{"2000"});
}

TEST_CASE("Numbers::lexeme shares one lexeme among equal forms") {
  const auto at_least = [](const char* bound) {
    NumberForm form;
    form.bounds.minimum = {Decimal::parse(bound), false};
    return form;
  };
  CHECK(Numbers::lexeme(at_least("1"), {}).dfa == Numbers::lexeme(at_least("1.0"), {}).dfa);
  CHECK(Numbers::lexeme(at_least("1"), {}).dfa != Numbers::lexeme(at_least("2"), {}).dfa);
  CHECK(Numbers::lexeme({}, {}).dfa == any_number(NumberKinds::any).dfa);
  CHECK(Numbers::lexeme({}, {.digits = 5}).dfa != any_number(NumberKinds::any).dfa);
}

TEST_CASE("Numbers::lexeme of great integers does not depend on those of draft 4 made before") {
  const NumberLimits limits = NumberLimits{}.as_written();
  for (const bool draft4_first : {true, false}) {
    const auto bound = Decimal::parse(draft4_first ? "1e250" : "1e251");
    const auto made  = [&](NumberKinds kinds) {
      return Numbers::lexeme({kinds, {.minimum = NumberBounds::Bound{bound, false}}}, limits).dfa;
    };
    if (draft4_first) CHECK(made(NumberKinds::digits)->empty());
    CHECK(test::accepts(*made(NumberKinds::integers), "1e260"));
    CHECK(made(NumberKinds::digits)->empty());
  }
}
