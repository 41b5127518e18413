#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/json_schema_constraint.hpp>
#include <tooldecode/core/error.hpp>

#include <support/catch.hpp>
#include <support/finite_language.hpp>

using namespace tooldecode;

namespace {

using Json = nlohmann::ordered_json;

// A closed object of members that have few values each, and all of its texts in any order.
struct Sample {
  Json schema;
  slow::Language language;
};

Sample sample(unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<std::pair<Json, std::vector<std::string>>> kinds{
      {{{"type", "boolean"}}, {"true", "false"}},
      {{{"enum", {"x", 12, nullptr}}}, {"\"x\"", "12", "12.0", "null"}},
      {{{"type", "array"}, {"items", {{"const", true}}}, {"maxItems", 2}},
       {"[]", "[true]", "[true, true]"}},
      {{{"enum", Json::array({0.5, 10.25})}}, {"0.5", "10.25"}}};
  struct Member {
    std::string key;
    std::vector<std::string> values;
    bool required;
  };
  std::vector<Member> members;
  Json properties = Json::object(), required = Json::array();
  for (const char* key : {"a", "ab", "c"}) {
    const auto& [schema, values] = kinds[random() % kinds.size()];
    properties[key]              = schema;
    members.push_back({key, values, random() % 2 == 0});
    if (members.back().required) required.push_back(key);
  }
  Sample result{{{"type", "object"},
                 {"properties", properties},
                 {"required", required},
                 {"additionalProperties", false}},
                {}};
  const auto write = [&](auto&& self, std::vector<std::size_t> used,
                         const std::string& text) -> void {
    bool complete = true;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (std::find(used.begin(), used.end(), i) != used.end()) continue;
      if (members[i].required) complete = false;
      auto more = used;
      more.push_back(i);
      for (const std::string& value : members[i].values) {
        self(self, more, text + (used.empty() ? "" : ", ") + '"' + members[i].key + "\": " + value);
      }
    }
    if (complete) result.language.insert(text + '}');
  };
  write(write, {}, "{");
  return result;
}

void check_refused(const char* schema, Errc code, const std::string& where) {
  INFO(schema);
  try {
    const auto constraint = JsonSchemaConstraint::parse(slow::pieces_of({"a"}, 1), schema);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(error.where() == where);
  }
}

}  // namespace

TEST_CASE("A schema's masks are those of all its values written out") {
  std::size_t states = 0, texts = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const Sample one = sample(seed);
    INFO("schema " << one.schema);
    const JsonSchemaConstraint constraint(slow::pieces_of(one.language, seed), one.schema,
                                          {.whitespace = 0});
    states += slow::check_masks(constraint, one.language, seed);
    texts += one.language.size();
  }
  CHECK(states > 500);
  CHECK(texts > 200);
}

TEST_CASE("The answer is the value and nothing around it") {
  const MaskCache cache(slow::pieces_of({"{}"}, 1));
  const auto constraint = JsonSchemaConstraint::parse(
      cache, R"({"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]})");
  for (const char* text : {R"({"a":"x","b":1})", R"({ "b" : 1, "a" : "é\n" })", "3", "[]",
                           R"({"b":-7,"other":{"c":[null]}})", "{\n  \"b\": 1\n}"}) {
    INFO(text);
    CHECK(slow::accepts(constraint, text));
  }
  for (const char* text : {"", " {\"b\":1}", "{\"b\":1} ", "{}", R"({"b":1,"b":2})", R"({"b":"1"})",
                           R"({"b":1)", R"({"b":1}{"b":1})", "nul"}) {
    INFO(text);
    CHECK_FALSE(slow::accepts(constraint, text));
  }
}

TEST_CASE("Spacing and order are options") {
  const MaskCache cache(slow::pieces_of({"{}"}, 1));
  const Json schema = {{"type", "object"},
                       {"properties", {{"a", {{"const", 1}}}, {"b", {{"const", 2}}}}},
                       {"additionalProperties", false}};
  const JsonSchemaConstraint plain(cache, schema);
  const JsonSchemaConstraint fixed(cache, schema, {.documented_order = true, .whitespace = 0});
  CHECK(slow::accepts(plain, R"({"b":2,"a":1})"));
  CHECK_FALSE(slow::accepts(fixed, R"({"b": 2, "a": 1})"));
  CHECK(slow::accepts(fixed, R"({"a": 1, "b": 2})"));
  CHECK_FALSE(slow::accepts(fixed, R"({"a":1, "b": 2})"));
}

TEST_CASE("What cannot be enforced is refused with its pointer") {
  check_refused(R"({"properties":{"a":{"items":{},"uniqueItems":true}}})",
                Errc::unsupported_keyword, "#/properties/a/uniqueItems");
  check_refused(R"({"items":{"type":"thing"}})", Errc::malformed_schema, "#/items/type");
  check_refused(R"({"type":"string","pattern":"("})", Errc::malformed_pattern, "#/pattern");
  check_refused("false", Errc::unsatisfiable_schema, "#");
  check_refused("[]", Errc::malformed_schema, "#");
  check_refused("{\"a\" 1}", Errc::malformed_json, "byte 5");
}
