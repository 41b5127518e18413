#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using Json = tooldecode::JsonValue;

TEST_CASE("find_keyword knows the drafts of a keyword and is_annotation_keyword all others") {
  for (const char* keyword : {"type", "oneOf", "pattern", "$ref", "required", "not", "format"}) {
    INFO(keyword);
    CHECK_FALSE(is_annotation_keyword(keyword));
  }
  for (const char* keyword : {"title", "description", "default", "x-order", "Type", ""}) {
    INFO(keyword);
    CHECK(is_annotation_keyword(keyword));
  }
  CHECK_FALSE(find_keyword("const")->is_in(SchemaDraft::draft4));
  CHECK(find_keyword("const")->is_in(SchemaDraft::draft6));
  CHECK_FALSE(find_keyword("if")->is_in(SchemaDraft::draft6));
  CHECK(find_keyword("dependencies")->is_in(SchemaDraft::draft2020));
  CHECK_FALSE(find_keyword("$recursiveRef")->is_in(SchemaDraft::draft2020));
  CHECK_FALSE(find_keyword("divisibleBy"));
}

TEST_CASE("find_draft finds a draft by its URI") {
  CHECK(find_draft("http://json-schema.org/draft-04/schema#") == SchemaDraft::draft4);
  CHECK(find_draft("http://json-schema.org/draft-07/schema") == SchemaDraft::draft7);
  CHECK(find_draft("https://json-schema.org/draft/2020-12/schema") == SchemaDraft::draft2020);
  CHECK_FALSE(find_draft("http://json-schema.org/draft-03/schema#"));
  CHECK_FALSE(find_draft("http://localhost/own"));
}

TEST_CASE("unescape_uri resolves the JSON pointers of RFC 6901") {
  // The document of RFC 6901, section 5, and its pointers as URI fragments (section 6).
  const Json document =
      tooldecode::text::parse_json(R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,
      "i\\j":5,"k\"l":6," ":7,"m~n":8})");
  const auto at = [&](const char* text) { return *document.find_at(unescape_uri(text).substr(1)); };
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
}
