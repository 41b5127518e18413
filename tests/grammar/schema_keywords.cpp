#include <string>

#include <tooldecode/grammar/schema_keywords.hpp>

#include <support/catch.hpp>

namespace {

using Json = nlohmann::ordered_json;

bool disjoint(const char* a, const char* b) {
  const bool forth = tooldecode::are_disjoint(Json::parse(a), Json::parse(b));
  const bool back  = tooldecode::are_disjoint(Json::parse(b), Json::parse(a));
  CHECK(forth == back);
  return forth;
}

}  // namespace

TEST_CASE("A keyword is a constraint, an annotation, or unknown", "[schema_keywords]") {
  for (const char* keyword : {"type", "oneOf", "pattern", "$ref", "required"}) {
    INFO(keyword);
    CHECK(tooldecode::is_constraint_keyword(keyword));
    CHECK_FALSE(tooldecode::is_annotation_keyword(keyword));
  }
  for (const char* keyword : {"title", "description", "default", "format", "x-order"}) {
    INFO(keyword);
    CHECK(tooldecode::is_annotation_keyword(keyword));
    CHECK_FALSE(tooldecode::is_constraint_keyword(keyword));
  }
  for (const char* keyword : {"not", "allOf", "if", "uniqueItems", "multipleOf", "$dynamicRef",
                              "unevaluatedProperties", "Type", ""}) {
    INFO(keyword);
    CHECK_FALSE(tooldecode::is_annotation_keyword(keyword));
    CHECK_FALSE(tooldecode::is_constraint_keyword(keyword));
  }
}

TEST_CASE("References are JSON pointers with both kinds of escapes", "[schema_keywords]") {
  // The document of RFC 6901, section 5, and what its pointers give as URI fragments (section 6).
  const Json document = Json::parse(R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,
      "i\\j":5,"k\"l":6," ":7,"m~n":8})");
  const auto at = [&](const char* text) { return tooldecode::resolve(document, text, "#/$ref"); };
  CHECK(at("#") == document);
  CHECK(at("#/foo/0") == "bar");
  CHECK(at("#/") == 0);
  CHECK(at("#/a~1b") == 1);
  CHECK(at("#/c%25d") == 2);
  CHECK(at("#/e%5Ef") == 3);
  CHECK(at("#/g%7Ch") == 4);
  CHECK(at("#/i%5Cj") == 5);
  CHECK(at("#/k%22l") == 6);
  CHECK(at("#/%20") == 7);
  CHECK(at("#/m~0n") == 8);
  const auto code = [&](const Json& reference) {
    try {
      (void)tooldecode::resolve(document, reference, "#/here");
    } catch (const tooldecode::Error& error) {
      CHECK(error.where() == "#/here");
      return std::string(name(error.code()));
    }
    return std::string("none");
  };
  for (const char* text : {"#/none", "#/foo/2", "#/foo/-", "#/m~2n", "#/m~", "#/foo/01"}) {
    INFO(text);
    CHECK(code(text) == "malformed_schema");
  }
  CHECK(code(3) == "malformed_schema");
  for (const char* text : {"", "#anchor", "other.json", "http://json-schema.org/schema#"}) {
    INFO(text);
    CHECK(code(text) == "unsupported_keyword");
  }
  CHECK(tooldecode::escape_pointer("a/b~c~1") == "a~1b~0c~01");
}

TEST_CASE("Schemas are called disjoint only where they are", "[schema_keywords]") {
  CHECK(disjoint(R"({"type":"string"})", R"({"type":["null","array"]})"));
  CHECK(disjoint(R"({"const":1})", R"({"enum":[2,"1"]})"));
  CHECK(disjoint(R"({"enum":["a"]})", R"({"type":"integer"})"));
  CHECK(disjoint("false", "{}"));
  CHECK(disjoint(R"({"type":"object","required":["k"],"properties":{"k":{"const":"a"}}})",
                 R"({"type":"object","required":["k"],"properties":{"k":{"const":"b"}}})"));
  CHECK_FALSE(disjoint(R"({"type":"integer"})", R"({"type":"number"})"));
  CHECK_FALSE(disjoint(R"({"const":1})", R"({"enum":[1.0]})"));
  CHECK_FALSE(disjoint(R"({"type":"string"})", R"({"minLength":2})"));
  CHECK_FALSE(disjoint("true", R"({"type":"null"})"));
  // The key decides only where both must have it.
  CHECK_FALSE(disjoint(R"({"type":"object","properties":{"k":{"const":"a"}}})",
                       R"({"type":"object","required":["k"],"properties":{"k":{"const":"b"}}})"));
}

TEST_CASE("Required names are read once each, and nothing else stands among them",
          "[schema_keywords]") {
  const auto names = [](const char* schema) {
    return tooldecode::required_of(nlohmann::ordered_json::parse(schema), "#/p");
  };
  CHECK(names("{}").empty());
  CHECK(names(R"({"required": ["b", "a", "b"]})") == std::vector<std::string>{"b", "a"});
  for (const char* wrong : {R"({"required": "a"})", R"({"required": ["a", 1]})"}) {
    INFO(wrong);
    try {
      (void)names(wrong);
      FAIL("no error");
    } catch (const tooldecode::Error& error) {
      CHECK(error.code() == tooldecode::Errc::malformed_schema);
      CHECK(error.where() == "#/p/required");
    }
  }
}
