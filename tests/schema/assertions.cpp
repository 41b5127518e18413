#include <string>

#include <tooldecode/schema/assertions.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using namespace tooldecode::text;
using Json = tooldecode::JsonValue;

namespace {

std::string error_of(const char* text, const auto& read) {
  const Json schema         = tooldecode::text::parse_json(text);
  const std::string pointer = "#/p";
  return test::error_of([&] { return read(Assertions(schema, SchemaDraft::draft2020, pointer)); });
}

}  // namespace

TEST_CASE("Assertions leave out the keywords of vocabularies that are not known") {
  const std::string pointer = "#";
  const Json schema         = tooldecode::text::parse_json(
      R"({"type": "null", "not": {}, "unevaluatedItems": false, "format": "date", "$ref": "#"})");
  const auto known = [&](const std::vector<std::string_view>& without, SchemaDraft draft) {
    std::string all;
    for (const char* name : {"type", "not", "unevaluatedItems", "format", "$ref"}) {
      if (Assertions(schema, draft, pointer, without).find(name) != nullptr) all += *name;
    }
    return all;
  };
  CHECK(known({}, SchemaDraft::draft2020) == "tnuf$");
  CHECK(known({"validation"}, SchemaDraft::draft2020) == "nuf$");
  CHECK(known({"applicator"}, SchemaDraft::draft2020) == "tuf$");
  CHECK(known({"applicator"}, SchemaDraft::draft2019) == "tf$");
  CHECK(known({"unevaluated", "validation"}, SchemaDraft::draft2020) == "nf$");
}

TEST_CASE("Assertions::numbers reads bounds and the boolean exclusive flags of draft 4") {
  const std::string pointer = "#";
  const auto bounds         = [&](const char* text) {
    const Json schema = tooldecode::text::parse_json(text);
    return Assertions(schema, SchemaDraft::draft4, pointer).numbers().bounds;
  };
  const auto flagged = bounds(R"({"minimum": 1, "exclusiveMinimum": true, "maximum": 2.5})");
  CHECK(flagged.minimum->exclusive);
  CHECK(flagged.minimum->value == Decimal::parse("1"));
  CHECK_FALSE(flagged.maximum->exclusive);
  const auto tighter = bounds(R"({"minimum": 3, "exclusiveMinimum": 2, "exclusiveMaximum": 4,
                                  "maximum": 4})");
  CHECK_FALSE(tighter.minimum->exclusive);
  CHECK(tighter.minimum->value == Decimal::parse("3"));
  CHECK(tighter.maximum->exclusive);
}

TEST_CASE("Assertions::find ignores keywords of other drafts") {
  const Json schema{{"const", 1}};
  const std::string pointer = "#";
  CHECK(Assertions(schema, SchemaDraft::draft4, pointer).find("const") == nullptr);
  CHECK(Assertions(schema, SchemaDraft::draft6, pointer).find("const") != nullptr);
}

TEST_CASE("Assertions errors name the keyword with an invalid value") {
  const auto types   = [](const Assertions& has) { return has.types(); };
  const auto numbers = [](const Assertions& has) { return has.numbers(); };
  const auto lengths = [](const Assertions& has) {
    return has.occurrences("minLength", "maxLength");
  };
  CHECK(error_of(R"({"type": ["string", "text"]})", types) == "malformed_schema #/p/type");
  CHECK(error_of(R"({"minimum": "1"})", numbers) == "malformed_schema #/p/minimum");
  CHECK(error_of(R"({"multipleOf": 0})", numbers) == "malformed_schema #/p/multipleOf");
  CHECK(error_of(R"({"maxLength": 1.5})", lengths) == "malformed_schema #/p/maxLength");
  CHECK(error_of(R"({"maxLength": 2.0})", lengths) == "none");
  CHECK(Assertions::names(Json{"b", "a", "b"}, "#") == std::vector<std::string>{"b", "a"});
  CHECK_THROWS_AS(Assertions::names(Json{"a", 1}, "#"), Error);
}

TEST_CASE("Assertions reads integers of draft 4 as digits and reads bounds and lengths exactly") {
  const std::string pointer = "#/p";
  const auto numbers        = [&](const Json& schema, SchemaDraft draft) {
    return Assertions(schema, draft, pointer).numbers();
  };
  const Json integer{{"type", "integer"}};
  CHECK(numbers(integer, SchemaDraft::draft4).kinds == NumberKinds::digits);
  CHECK(numbers(integer, SchemaDraft::draft6).kinds == NumberKinds::integers);
  CHECK(numbers({{"type", "number"}}, SchemaDraft::draft4).kinds == NumberKinds::any);
  const auto exact = [](const char* text) {
    return ExactNumber::keep(text, tooldecode::text::parse_json(text));
  };
  const auto form = numbers({{"minimum", exact("18446744073709551617")}, {"maximum", 5e-324}},
                            SchemaDraft::draft2020);
  CHECK(form.bounds.minimum->value.plain() == "18446744073709551617");
  CHECK(form.bounds.maximum->value == Decimal::parse("5e-324"));
  const Json lengths{{"minLength", 3.0}, {"maxLength", exact("18446744073709551617")}};
  CHECK(
      Assertions(lengths, SchemaDraft::draft2020, pointer).occurrences("minLength", "maxLength") ==
      Occurrences{3});
  const auto read = [](const Assertions& has) { return has.numbers(); };
  CHECK(error_of(R"({"maximum": 1e-300, "minimum": "1"})", read) == "malformed_schema #/p/minimum");
  const Json tiny{{"multipleOf", exact("1e-5000")}};
  try {
    (void)numbers(tiny, SchemaDraft::draft2020);
    FAIL("1e-5000 is no divisor");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::limit_exceeded);
    CHECK(error.where() == "#/p/multipleOf");
  }
}
