#include <string>

#include <tooldecode/formats/tag_fields.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using formats::TagFields;
using Json = tooldecode::JsonValue;

namespace {

template <class Read>
std::string error_of(const char* document, const Read& read) {
  const Json json = tooldecode::text::parse_json(document);
  return test::error_of([&] {
    TagFields fields(json, "#/x");
    read(fields);
    fields.finish();
  });
}

}  // namespace

TEST_CASE("TagFields reads each field as the requested type") {
  const Json json = tooldecode::text::parse_json(
      R"({"text": "a", "flag": true, "count": 3, "list": [1], "texts": ["a", "b"], "none": null})");
  TagFields fields(json, "#");
  CHECK(fields.text("text") == "a");
  CHECK(fields.flag("flag", false));
  CHECK(fields.flag("missing", true));
  CHECK(fields.find_count("count") == 3U);
  CHECK_FALSE(fields.find_count("none"));
  CHECK(fields.list("list").size() == 1);
  CHECK(fields.texts("texts") == std::vector<std::string>{"a", "b"});
  CHECK(fields.texts("missing").empty());
  CHECK(fields.pointer("a/b~") == "#/a~1b~0");
  CHECK_NOTHROW(fields.refuse("none", "never there"));
  CHECK_NOTHROW(fields.finish());
}

TEST_CASE("TagFields refuses a missing, unknown or mistyped field with its place") {
  CHECK(error_of("[]", [](TagFields&) {}) == "malformed_document #/x");
  CHECK(error_of(R"({"a": 1})", [](TagFields&) {}) == "malformed_document #/x/a");
  CHECK(error_of(R"({"a": 1})", [](TagFields& f) { (void)f.text("a"); }) ==
        "malformed_document #/x/a");
  CHECK(error_of("{}", [](TagFields& f) { (void)f.text("a"); }) == "malformed_document #/x");
  CHECK(error_of(R"({"a": 1})", [](TagFields& f) { (void)f.flag("a", true); }) ==
        "malformed_document #/x/a");
  for (const char* wrong :
       {R"({"a": -1})", R"({"a": 1.5})", R"({"a": 4294967296})", R"({"a": "1"})"}) {
    CHECK(error_of(wrong, [](TagFields& f) { (void)f.find_count("a"); }) ==
          "malformed_document #/x/a");
  }
  for (const char* wrong : {R"({"a": []})", R"({"a": {}})"}) {
    CHECK(error_of(wrong, [](TagFields& f) { (void)f.list("a"); }) == "malformed_document #/x/a");
  }
  CHECK(error_of(R"({"a": ["b", ""]})", [](TagFields& f) { (void)f.texts("a"); }) ==
        "malformed_document #/x/a/1");
  CHECK(error_of(R"({"a": 1})", [](TagFields& f) { f.refuse("a", "no"); }) ==
        "unsupported_keyword #/x/a");
}

TEST_CASE("ends_nowhere holds for formats of text without an end") {
  const auto nowhere = [](const char* text) {
    return formats::ends_nowhere(tooldecode::text::parse_json(text));
  };
  CHECK(nowhere(R"({"type": "any_text"})"));
  CHECK(nowhere(R"({"type": "optional", "content": {"type": "star"}})"));
  CHECK(nowhere(R"({"type": "or", "elements": [{"type": "token"}, {"type": "any_tokens"}]})"));
  CHECK_FALSE(nowhere(R"({"type": "tag", "content": {"type": "any_text"}})"));
  CHECK_FALSE(nowhere(R"({"type": "const_string"})"));
  CHECK_FALSE(nowhere("3"));
}
