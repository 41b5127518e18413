#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/form_judge.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using Json = tooldecode::JsonValue;

namespace {

bool admits(const char* schema, const char* value, DocumentRules rules = {}) {
  const Json root = tooldecode::text::parse_json(schema);
  Reader reader(root, std::move(rules));
  return test::FormJudge(reader.forms)(reader.form(root, "#"), tooldecode::text::parse_json(value));
}

// Judges 400 random values by the schema's form and by the validator; how many conform.
template <class Make>
std::size_t count_conforming(const Json& root, std::mt19937 random, const Make& make) {
  Reader reader(root);
  test::FormJudge judge(reader.forms);
  const FormId id        = reader.form(root, "#");
  std::size_t conforming = 0;
  for (int i = 0; i < 400; ++i) {
    const Json value    = make(random);
    const bool expected = slow::conforms(value, root, root);
    conforming += expected ? 1 : 0;
    INFO(value.text());
    REQUIRE(judge(id, value) == expected);
  }
  return conforming;
}

}  // namespace

TEST_CASE("Reader reads siblings of $ref from 2019-09 and ignores them before") {
  const char* schema = R"({"$ref": "#/definitions/a", "maximum": 3,
                           "definitions": {"a": {"type": "integer"}}})";
  CHECK_FALSE(admits(schema, "5"));
  CHECK(admits(schema, "5", {.draft = SchemaDraft::draft7}));
}

TEST_CASE("Reader reads members that say a type alone as one form, like those that list the type") {
  const auto are_equal = [](const Form& a, const Form& b) {
    return a.null == b.null && a.truth == b.truth && a.falsehood == b.falsehood &&
           a.numbers == b.numbers && a.texts == b.texts && a.arrays == b.arrays &&
           a.objects == b.objects;
  };
  for (const std::string name :
       {"string", "integer", "number", "boolean", "array", "object", "null"}) {
    for (const SchemaDraft draft : {SchemaDraft::draft4, SchemaDraft::draft2020}) {
      INFO(name);
      const Json root = tooldecode::text::parse_json(
          R"({"properties": {"a": {"type": ")" + name + R"("}, "b": {"type": [")" + name +
          R"("]}, "c": {"description": "c", "type": ")" + name + R"("}}})");
      Reader reader(root, {.draft = draft, .close_objects = true});
      const auto members = reader.forms[reader.form(root, "#")].objects.at(0).members;
      REQUIRE(members.size() == 3);
      CHECK(are_equal(reader.forms[members[0].value], reader.forms[members[1].value]));
      CHECK(are_equal(reader.forms[members[2].value], reader.forms[members[1].value]));
      CHECK((members[0].value == members[2].value) == (draft != SchemaDraft::draft4));
    }
  }
}

TEST_CASE("Reader ignores keywords that the draft does not contain") {
  CHECK(admits(R"({"$schema": "http://json-schema.org/draft-04/schema#", "const": 1})", "2"));
  CHECK_FALSE(admits(R"({"const": 1})", "2"));
}

TEST_CASE("Reader of a condition for each value of a key takes steps in proportion to pairs") {
  // The k-th condition demands the key of its value, and that the keys of other values are numbers.
  const auto schema = [](std::size_t count, bool is_listed) {
    Json conditions = Json::array(), kinds = Json::array();
    for (std::size_t k = 0; k < count; ++k) {
      const std::string kind = "k" + std::to_string(k), key = "w" + std::to_string(k);
      kinds.push_back(kind);
      conditions.push_back(
          {{"if", {{"properties", {{"kind", {{"const", kind}}}}}, {"required", {"kind"}}}},
           {"then", {{"required", {key}}}},
           {"else", {{"properties", {{key, {{"type", "number"}}}}}}}});
    }
    const Json kind = is_listed ? Json{{"enum", kinds}} : Json{{"type", "string"}};
    return Json{{"type", "object"}, {"properties", {{"kind", kind}}}, {"allOf", conditions}};
  };
  for (const bool is_listed : {false, true}) {
    std::vector<std::uint64_t> steps;
    for (const std::size_t count : {16U, 32U, 64U}) {
      const Json root = schema(count, is_listed);
      const BuildBudget budget;
      Reader reader(root);
      (void)reader.forms[reader.form(root, "#")];
      steps.push_back(budget.spent().steps);
    }
    INFO(steps[0] << ", " << steps[1] << ", " << steps[2]);
    CHECK(steps[2] < 10 * steps[1]);
    CHECK(steps[1] < 10 * steps[0]);

    const Json values[]{"k0", "k7", "k19", "k20", 1, "text"};
    const auto random_value = [&](std::mt19937& random) {
      Json value = Json::object();
      if (random() % 8 != 0) value["kind"] = values[random() % 5];
      for (const char* key : {"w0", "w7", "w19", "other"}) {
        if (random() % 2 != 0) value[key] = values[4 + random() % 2];
      }
      return value;
    };
    CHECK(count_conforming(schema(20, is_listed), std::mt19937(11), random_value) > 40);
  }
}

TEST_CASE("Reader of oneOf admits values of exactly one of overlapping branches") {
  const char* schema = R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]},
                                     {"properties": {"c": {"type": "null"}}, "required": ["c"]}]})";
  CHECK(admits(schema, R"({"a": 1})"));
  CHECK(admits(schema, R"({"a": 1, "c": 1})"));
  CHECK_FALSE(admits(schema, R"({"a": 1, "c": null})"));
  CHECK_FALSE(admits(schema, R"({"a": 1, "b": 1})"));
  CHECK_FALSE(admits(schema, R"({})"));
  CHECK_FALSE(admits(schema, R"(1)"));
}

TEST_CASE("Reader of oneOf whose branches a key tells apart takes steps in proportion to them") {
  // Neighbours share a value of the key. Some branches have alternatives, and another common key.
  const auto schema = [](std::size_t count) {
    Json branches = Json::array();
    for (std::size_t k = 0; k < count; ++k) {
      const std::string kind = "k" + std::to_string(k), next = "k" + std::to_string(k + 1);
      const std::string key = "w" + std::to_string(k);
      Json branch           = {{"type", "object"},
                               {"properties",
                                {{"kind", {{"enum", {kind, next}}}},
                                 {"common", {{"enum", {"a", "b"}}}},
                                 {key, {{"type", "number"}}}}},
                               {"required", {"common", "kind"}}};
      if (k % 3 == 0) branch["anyOf"] = {{{"required", {key}}}, {{"required", {"other"}}}};
      branches.push_back(branch);
    }
    return Json{{"oneOf", branches}};
  };
  std::vector<std::uint64_t> steps;
  for (const std::size_t count : {200U, 400U, 800U}) {
    const Json root = schema(count);
    const BuildBudget budget;
    Reader reader(root);
    (void)reader.forms[reader.form(root, "#")];
    steps.push_back(budget.spent().steps);
  }
  INFO(steps[0] << ", " << steps[1] << ", " << steps[2]);
  CHECK(steps[1] < 3 * steps[0]);
  CHECK(steps[2] < 3 * steps[1]);

  const auto random_value = [](std::mt19937& random) {
    Json value = Json::object();
    if (random() % 8 != 0) value["kind"] = "k" + std::to_string(random() % 43);
    if (random() % 8 != 0) value["common"] = random() % 8 != 0 ? "a" : "c";
    if (random() % 2 != 0) value["other"] = 1;
    for (int k = 0; k < 3; ++k) {
      const std::string key = "w" + std::to_string(random() % 41);
      if (random() % 2 != 0) value[key] = random() % 2 != 0 ? Json(1) : Json("text");
      if (value.contains("kind") && random() % 2 != 0) {
        value["w" + value["kind"].get<std::string>().substr(1)] =
            random() % 2 != 0 ? Json(1) : Json("text");
      }
    }
    return value;
  };
  CHECK(count_conforming(schema(40), std::mt19937(5), random_value) > 40);
}

TEST_CASE("Reader of oneOf refuses what a branch of many closed alternatives admits too") {
  const Json integer{{"type", "integer"}};
  for (const int count : {3, 7, 33}) {
    Json many = Json::array();
    for (int i = 0; i < count; ++i) {
      const std::string k = "k" + std::to_string(i), m = "m" + std::to_string(i);
      many.push_back(
          {{"type", "object"}, {"properties", {{k, integer}, {m, integer}}}, {"required", {k, m}}});
    }
    const Json one{{"type", "object"},
                   {"properties", {{"k0", integer}, {"m0", integer}, {"k1", integer}}},
                   {"required", {"k0", "m0", "k1"}},
                   {"additionalProperties", false}};
    const std::string text = Json{{"type", "object"}, {"oneOf", {one, {{"oneOf", many}}}}}.text();
    INFO(count);
    const BuildBudget budget({.steps = 5'000'000});
    if (count == 33) {
      // Branches that only test are not closed, so their alternatives multiply.
      CHECK(test::code_of([&] { (void)admits(text.c_str(), "1", {.close_objects = true}); }) ==
            Errc::limit_exceeded);
      continue;
    }
    CHECK_FALSE(admits(text.c_str(), R"({"k0": 1, "m0": 1, "k1": 1})", {.close_objects = true}));
    CHECK(admits(text.c_str(), R"({"k1": 1, "m1": 1})", {.close_objects = true}));
  }
}

TEST_CASE("Reader of not admits values below and above the excluded bounds") {
  for (const char* schema : {R"({"not": {"minItems": 1, "maxItems": 2}})",
                             R"({"not": {"contains": true, "maxContains": 2}})"}) {
    INFO(schema);
    CHECK(admits(schema, "[]"));
    CHECK_FALSE(admits(schema, "[1]"));
    CHECK(admits(schema, "[1, 2, 3]"));
  }
  const char* schema = R"({"not": {"minProperties": 1, "maxProperties": 1,
                                   "dependentRequired": {"a": ["a"]}}})";
  CHECK(admits(schema, "{}"));
  CHECK_FALSE(admits(schema, R"({"a": 1})"));
  CHECK(admits(schema, R"({"a": 1, "b": 2})"));
}

TEST_CASE("Reader of $dynamicRef takes the outermost $dynamicAnchor") {
  const char* schema = R"({"$id": "http://h/strict", "$ref": "tree", "$dynamicAnchor": "node",
      "unevaluatedProperties": false,
      "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node", "type": "object",
                         "properties": {"next": {"$dynamicRef": "#node"}}}}})";
  CHECK(admits(schema, R"({"next": {"next": {}}})"));
  CHECK_FALSE(admits(schema, R"({"next": {"nxt": {}}})"));
}

TEST_CASE("Reader of nullable admits null in each draft if the rules enable it") {
  const DocumentRules openapi{.nullable = true};
  for (const char* schema :
       {R"({"type": "integer", "nullable": true})", R"({"enum": [1], "nullable": true})",
        R"({"const": 1, "nullable": true})", R"({"not": {"type": "null"}, "nullable": true})",
        R"({"allOf": [{"type": "integer"}], "nullable": true})",
        R"({"$ref": "#/$defs/a", "nullable": true, "$defs": {"a": {"type": "integer"}}})"}) {
    INFO(schema);
    CHECK(admits(schema, "null", openapi));
    CHECK(admits(schema, "1", openapi));
    CHECK_FALSE(admits(schema, "null"));
  }
  CHECK_FALSE(admits(R"({"type": "integer", "nullable": false})", "null", openapi));
  // Up to draft 7 the other siblings of a reference are ignored.
  const char* referred = R"({"$ref": "#/definitions/a", "nullable": true, "maximum": 3,
                             "definitions": {"a": {"type": "integer"}}})";
  CHECK(admits(referred, "null", {.draft = SchemaDraft::draft7, .nullable = true}));
  CHECK(admits(referred, "5", {.draft = SchemaDraft::draft7, .nullable = true}));
  CHECK_FALSE(admits(referred, "5", openapi));
  // `not` excludes null too.
  CHECK_FALSE(admits(R"({"not": {"type": "integer", "nullable": true}})", "null", openapi));
  CHECK(admits(R"({"not": {"type": "integer", "nullable": true}})", R"("a")", openapi));
  try {
    admits(R"({"properties": {"a": {"type": "string", "nullable": "yes"}}})", R"({"a": 1})",
           openapi);
    FAIL("a flag is true or false");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::malformed_schema);
    CHECK(error.where() == "#/properties/a/nullable");
  }
  CHECK_THROWS_AS(admits(R"({"$ref": "#", "nullable": true})", "null", openapi), Error);
}

TEST_CASE("Reader refuses what has no form, with its place") {
  for (const auto& [text, place] : std::vector<std::pair<const char*, const char*>>{
           {R"({"type": "object", "not": {"additionalProperties": {"type": "null"}}})", "#/not"},
           {R"({"type": "object", "$ref": "http://elsewhere/"})", "#/$ref"}}) {
    INFO(text);
    const Json root = tooldecode::text::parse_json(text);
    Reader reader(root);
    try {
      static_cast<void>(reader.forms[reader.form(root, "#")]);
      FAIL("it has a form");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unsupported_keyword);
      CHECK(error.where() == place);
    }
  }
}

TEST_CASE("Reader throws limit_exceeded for a schema whose alternatives multiply") {
  // Each part has different members, so that alternatives multiply.
  Json product = Json::object();
  for (int i = 0; i < 40; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
    product["allOf"].push_back({{"anyOf",
                                 {{{"properties", {{a, {{"minLength", i}}}}}},
                                  {{"properties", {{b, {{"minLength", i}}}}}}}}});
  }
  const BuildBudget budget;
  Reader reader(product);
  try {
    (void)reader.forms[reader.form(product, "#")];
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::limit_exceeded);
    CHECK(error.where() == "#/allOf");
  }
}

TEST_CASE("Reader of allOf subtracts a negation from the other parts") {
  // Alone, the negation requires a further property with its own value, which has no form.
  for (const char* schema : {R"({"allOf": [{"enum": [{"a": 1}, {"a": true}]},
                      {"not": {"additionalProperties": {"type": "boolean"}}}]})",
                             R"({"allOf": [{"not": {"additionalProperties": {"type": "boolean"}}},
                      {"enum": [{"a": 1}, {"a": true}]}]})"}) {
    INFO(schema);
    CHECK(admits(schema, R"({"a": 1})"));
    CHECK_FALSE(admits(schema, R"({"a": true})"));
    CHECK_FALSE(admits(schema, R"({"a": 2})"));
  }
  CHECK_THROWS_AS(
      admits(R"({"allOf": [{"not": {"additionalProperties": {"type": "null"}}}]})", "1"), Error);
}

TEST_CASE("Reader of unevaluatedItems leaves out the items that a contains evaluates") {
  const char* schema = R"({"prefixItems": [true], "contains": {"type": "string"},
                           "unevaluatedItems": {"type": "null"}})";
  CHECK(admits(schema, R"([1, "a", null])"));
  CHECK(admits(schema, R"(["a"])"));
  CHECK_FALSE(admits(schema, R"([1, "a", 2])"));
  CHECK_FALSE(admits(schema, R"([1, null])"));
  const char* failed = R"({"if": {"contains": {"const": "a"}, "minContains": 2},
                           "unevaluatedItems": {"const": "b"}})";
  CHECK(admits(failed, R"(["a", "a", "b"])"));
  CHECK(admits(failed, R"(["b"])"));
  CHECK_FALSE(admits(failed, R"(["a", "b"])"));
}

TEST_CASE("Reader of an if alone evaluates what its condition holds for, and tests nothing") {
  // That a matching key has a value of another type has no form, and is not needed.
  const char* schema = R"({"if": {"patternProperties": {"^f": {"type": "string"}}},
                           "unevaluatedProperties": false})";
  CHECK(admits(schema, R"({"f": "a", "foo": "b"})"));
  CHECK(admits(schema, R"({})"));
  CHECK_FALSE(admits(schema, R"({"f": 1})"));
  CHECK_FALSE(admits(schema, R"({"f": "a", "b": "a"})"));
  const char* negated = R"({"not": {"if": {"patternProperties": {"^f": {"type": "string"}}},
                                    "unevaluatedProperties": false}, "maxProperties": 1,
                            "propertyNames": {"enum": ["f", "b"]}})";
  CHECK(admits(negated, R"({"f": 1})"));
  CHECK(admits(negated, R"({"b": "a"})"));
  CHECK_FALSE(admits(negated, R"({"f": "a"})"));
  CHECK_FALSE(admits(negated, R"({})"));
  const char* items =
      R"({"if": {"prefixItems": [{"type": "integer"}]}, "unevaluatedItems": false})";
  CHECK(admits(items, "[1]"));
  CHECK(admits(items, "[]"));
  CHECK_FALSE(admits(items, R"(["a"])"));
  CHECK_FALSE(admits(items, "[1, 1]"));
}
