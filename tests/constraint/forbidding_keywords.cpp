#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/constraint/forbidding_keywords.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using Reach = constraint::ForbiddingKeywords::Reach;

TEST_CASE("ForbiddingKeywords::find returns the keywords that the judge needs together") {
  // The assertions of this schema, each of which a judge may need.
  const JsonValue schema = text::parse_json(R"({"type": "object", "required": ["a"],
      "properties": {"a/b": {"type": "integer", "maximum": 3, "minimum": 1},
                     "list": {"prefixItems": [{"const": 1}, {"enum": [2]}], "items": {"not": {"type": "null"}}}},
      "allOf": [{"minProperties": 1}, {"maxProperties": 9, "title": "t"}], "$defs": {"d": {"pattern": "x"}}})");
  const std::vector<std::string> assertions{"/type",
                                            "/required",
                                            "/properties/a~1b/type",
                                            "/properties/a~1b/maximum",
                                            "/properties/a~1b/minimum",
                                            "/properties/list/prefixItems/0/const",
                                            "/properties/list/prefixItems/1/enum",
                                            "/properties/list/items/not",
                                            "/allOf/0/minProperties",
                                            "/allOf/1/maxProperties",
                                            "/$defs/d/pattern"};
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::set<std::string> needed;
    for (std::size_t i = random() % 4; i > 0; --i)
      needed.insert(assertions[random() % assertions.size()]);
    const auto judge = [&](const JsonValue& changed) {
      for (const std::string& pointer : needed) {
        if (changed.find_at(pointer) == nullptr) return Reach::more;
      }
      return Reach::same;
    };
    const auto found = constraint::ForbiddingKeywords(schema, judge).find();
    REQUIRE(std::set(found.begin(), found.end()) == needed);
    REQUIRE(found.size() == needed.size());
  }
}

TEST_CASE("ForbiddingKeywords::find returns one of two keywords that forbid alike, not its type") {
  const JsonValue schema = text::parse_json(R"({"type": "integer", "maximum": 3})");
  const auto judge       = [](const JsonValue& changed) {
    return changed.contains("type") || changed.contains("maximum") ? Reach::same : Reach::more;
  };
  CHECK(constraint::ForbiddingKeywords(schema, judge).find() ==
        std::vector<std::string>{"/maximum"});
}

TEST_CASE("ForbiddingKeywords::find names no keyword without which the text gets less far") {
  const JsonValue schema = text::parse_json(R"({"minContains": 0, "contains": true})");
  const auto judge       = [](const JsonValue& changed) {
    return changed.contains("minContains") ? Reach::same : Reach::less;
  };
  CHECK(constraint::ForbiddingKeywords(schema, judge).find().empty());
}

TEST_CASE("ForbiddingKeywords::find ends at a limit and passes other errors on") {
  const JsonValue schema = text::parse_json(R"({"type": "integer"})");
  CHECK(constraint::ForbiddingKeywords(
            schema,
            [](const JsonValue&) -> Reach { throw Error(Errc::limit_exceeded, "", "costs more"); })
            .find()
            .empty());
  constraint::ForbiddingKeywords cancelled(
      schema, [](const JsonValue&) -> Reach { throw Error(Errc::cancelled, "", "was cancelled"); });
  CHECK_THROWS_AS(cancelled.find(), Error);
}
