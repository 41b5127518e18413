#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using Json = tooldecode::JsonValue;

TEST_CASE(
    "ExactNumber::keep keeps the text of numbers that neither 64 bits nor a double hold exactly") {
  const auto keep = [](const char* text) {
    return ExactNumber::keep(text, tooldecode::text::parse_json(text));
  };
  for (const char* held :
       {"0", "-1", "0.1", "1e-7", "5e-324", "1.7976931348623157e308", "18446744073709551615",
        "-9223372036854775808", "100000000000000000000", "0.10000000000000000", "1.5e-323"}) {
    INFO(held);
    CHECK_FALSE(keep(held).is_exact());
    CHECK(keep(held) == tooldecode::text::parse_json(held));
  }
  for (const char* kept : {"18446744073709551617", "-9223372036854775809", "1.2e-323", "1e-400",
                           "0.1000000000000000055", "123456789012345678.5", "1e-5000"}) {
    INFO(kept);
    CHECK(keep(kept).is_exact());
    CHECK(ExactNumber::is_number(keep(kept)));
    CHECK(keep(kept).text() == kept);
  }
  CHECK_FALSE(Json("18446744073709551617").is_exact());
}

TEST_CASE("ExactNumber::rounded turns kept numbers into those that parse_json returns") {
  const Json large = ExactNumber::keep("18446744073709551617",
                                       tooldecode::text::parse_json("18446744073709551617"));
  const Json document{{"a", {1, large}}, {"b", {{"c", large}}}};
  CHECK(ExactNumber::is_in(document));
  const Json rounded = ExactNumber::rounded(document);
  CHECK_FALSE(ExactNumber::is_in(rounded));
  CHECK(rounded == tooldecode::text::parse_json(
                       R"({"a": [1, 18446744073709551617], "b": {"c": 18446744073709551617}})"));
}
