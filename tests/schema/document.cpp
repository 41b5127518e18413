#include <map>
#include <string>

#include <tooldecode/schema/document.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using Json = tooldecode::JsonValue;

TEST_CASE("resolve_uri resolves the examples of RFC 3986 section 5.4") {
  const auto at = [](const char* reference) {
    return resolve_uri("http://a/b/c/d;p?q", reference);
  };
  CHECK(at("g:h") == "g:h");
  CHECK(at("g") == "http://a/b/c/g");
  CHECK(at("./g") == "http://a/b/c/g");
  CHECK(at("g/") == "http://a/b/c/g/");
  CHECK(at("/g") == "http://a/g");
  CHECK(at("//g") == "http://g");
  CHECK(at("?y") == "http://a/b/c/d;p?y");
  CHECK(at("g?y") == "http://a/b/c/g?y");
  CHECK(at("") == "http://a/b/c/d;p?q");
  CHECK(at(".") == "http://a/b/c/");
  CHECK(at("..") == "http://a/b/");
  CHECK(at("../g") == "http://a/b/g");
  CHECK(at("../..") == "http://a/");
  CHECK(at("../../../g") == "http://a/g");
  CHECK(at("g/./h") == "http://a/b/c/g/h");
  CHECK(resolve_uri("", "a/b") == "a/b");
  CHECK(resolve_uri("http://a", "b") == "http://a/b");
  CHECK(resolve_uri("urn:x:y", "") == "urn:x:y");
}

TEST_CASE("Document::find resolves pointers, anchors and embedded resources and throws otherwise") {
  const Json root = tooldecode::text::parse_json(R"({"$id": "http://h/root", "$defs": {
      "a/b~": {"$anchor": "one", "const": 1},
      "inner": {"$id": "inner", "$defs": {"x": {"const": 2}}, "items": {"$anchor": "one"}}}})");
  const Document document(root);
  const auto place = [&](const char* reference, Document::ResourceId from = {}) {
    return document.find(reference, from, "#/$ref").pointer;
  };
  CHECK(place("#") == "#");
  CHECK(place("#/$defs/a~1b~0") == "#/$defs/a~1b~0");
  CHECK(place("#one") == "#/$defs/a~1b~0");
  CHECK(place("http://h/root#one") == "#/$defs/a~1b~0");
  CHECK(place("inner") == "#/$defs/inner");
  CHECK(place("inner#/$defs/x") == "#/$defs/inner/$defs/x");
  const auto inner = document.resource_of(root["$defs"]["inner"], {});
  CHECK(inner != Document::ResourceId{});
  CHECK(place("#one", inner) == "#/$defs/inner/items");
  CHECK(place("root", inner) == "#");
  const auto code = [&](const char* reference) {
    try {
      (void)place(reference);
      return std::string("found");
    } catch (const Error& error) {
      CHECK(error.where() == "#/$ref");
      return std::string(name(error.code()));
    }
  };
  CHECK(code("#/nothing") == "malformed_schema");
  CHECK(code("#two") == "malformed_schema");
  CHECK(code("#/$defs/a~2") == "malformed_schema");
  CHECK(code("http://elsewhere/") == "unsupported_keyword");
}

TEST_CASE("Document::find resolves references to documents next to the schema") {
  const Json root = true;
  const std::map<std::string, JsonValue> remotes{
      {"http://h/a.json", {{"definitions", {{"x", true}}}}}};
  const Document document(root, SchemaDraft::draft7, remotes);
  CHECK(document.find("http://h/a.json#/definitions/x", {}, "#").pointer ==
        "http://h/a.json#/definitions/x");
}

TEST_CASE("Document reads the vocabularies of the caller's metaschema") {
  const std::string vocab = "https://json-schema.org/draft/2020-12/vocab/";
  const auto resource     = [&](const Json& vocabularies, const char* dialect = "http://h/meta#") {
    const std::map<std::string, JsonValue> remotes{
            {"http://h/meta",
         {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"$vocabulary", vocabularies}}},
            {"http://h/other", {{"$schema", "http://h/meta"}}}};
    const Json root{{"$schema", dialect}};
    return Document(root, SchemaDraft::draft7, remotes)[{}];
  };
  const auto all = resource({{vocab + "core", true},
                             {vocab + "applicator", true},
                             {vocab + "validation", true},
                             {vocab + "unevaluated", false},
                             {vocab + "format-annotation", true}});
  CHECK(all.draft == SchemaDraft::draft2020);
  CHECK(all.without.empty());
  CHECK_FALSE(all.asserts_format);
  const auto few = resource(
      {{vocab + "core", true}, {vocab + "format-assertion", false}, {"http://h/own", false}});
  CHECK(few.without == std::vector<std::string_view>{"applicator", "validation", "unevaluated"});
  CHECK(few.asserts_format);
  const auto refused = [&](const auto&... arguments) {
    try {
      (void)resource(arguments...);
      return false;
    } catch (const Error& error) {
      return error.code() == Errc::unsupported_keyword && error.where() == "#/$schema";
    }
  };
  CHECK(refused(Json{{vocab + "core", true}, {"http://h/own", true}}));
  CHECK(refused(Json::array()));
  CHECK(refused(Json{{vocab + "core", true}}, "http://h/none"));
  CHECK(refused(Json{{vocab + "core", true}}, "http://h/other"));
}

TEST_CASE("Document in draft 7 reads $id as an anchor and ignores the siblings of a reference") {
  const Json root =
      tooldecode::text::parse_json(R"({"$schema": "http://json-schema.org/draft-07/schema#",
      "definitions": {"a": {"$id": "#here"}, "b": {"$id": "other", "$ref": "#here"}}})");
  const Document document(root);
  CHECK(document[{}].draft == SchemaDraft::draft7);
  CHECK(document.find("#here", {}, "#").pointer == "#/definitions/a");
  CHECK_THROWS_AS(document.find("other", {}, "#"), Error);
}

TEST_CASE("Document ignores anchors and ids inside constants and unknown keywords") {
  const Json root =
      tooldecode::text::parse_json(R"({"const": {"$anchor": "a"}, "x-own": {"$id": "b"}})");
  const Document document(root);
  CHECK_THROWS_AS(document.find("#a", {}, "#"), Error);
  CHECK_THROWS_AS(document.find("b", {}, "#"), Error);
}
