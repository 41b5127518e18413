#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/key_conditions.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;

namespace {

// The objects that are visited for the only object of a schema.
std::vector<ObjectForm> visited(const std::string& text, MemberOrder order) {
  const JsonValue schema = tooldecode::text::parse_json(text);
  Reader reader(schema);
  std::vector<ObjectForm> result;
  for (const ObjectForm& object : reader.forms[reader.form(schema, "#")].objects) {
    visit_by_conditions(object, reader.forms, order,
                        [&](ObjectForm one) { result.push_back(std::move(one)); });
  }
  return result;
}

constexpr const char* either = R"({"type": "object", "properties": {"a": {}, "b": {}},
    "additionalProperties": false, "anyOf": [{"required": ["a"]}, {"required": ["b"]}])";

}  // namespace

TEST_CASE("Conditions on keys stay, where a set of members keeps them") {
  const auto objects = visited(std::string(either) + '}', MemberOrder::any);
  REQUIRE(objects.size() == 1);
  CHECK(objects[0].together.size() == 1);
  KeyedSet set{};
  add_conditions(set, objects[0]);
  REQUIRE(set.together.size() == 1);
  CHECK(set.together[0].keys == std::vector<std::uint32_t>{0, 1});
  CHECK(set.together[0].allowed == 0b1110);
}

TEST_CASE("Conditions on keys become alternatives, where members have an order or a count") {
  for (const auto& objects :
       {visited(std::string(either) + '}', MemberOrder::fixed),
        visited(std::string(either) + R"(, "minProperties": 1})", MemberOrder::any)}) {
    std::set<std::string> required;
    for (const ObjectForm& object : objects) {
      CHECK(object.together.empty());
      std::string names;
      for (const auto& member : object.members) {
        if (member.required) names += member.name;
      }
      required.insert(names);
    }
    CHECK(required == std::set<std::string>{"a", "b", "ab"});
  }
}

TEST_CASE("A key that a condition names is a member") {
  const auto objects =
      visited(R"({"type": "object", "properties": {"a": {}}, "dependentRequired": {"x": ["y"]}})",
              MemberOrder::any);
  REQUIRE(objects.size() == 1);
  REQUIRE(objects[0].members.size() == 3);
  KeyedSet set{};
  add_conditions(set, objects[0]);
  CHECK(set.dependent == std::vector<KeyedSet::Dependence>{{1, 2}});
}
