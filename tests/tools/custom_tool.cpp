#include <string>
#include <vector>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

std::string error_of(const std::string& format) {
  return test::error_of([&] {
    return custom_parameters(
        tooldecode::text::parse_json(R"({"name": "f", "format": )" + format + '}'), "#/0/custom");
  });
}

}  // namespace

TEST_CASE("ToolSet reads a custom tool of either API's form as a tool with one text argument") {
  const std::string grammar = R"({"syntax": "regex", "definition": "a|b"})";
  for (const std::string& document :
       {R"({"type": "custom", "custom": {"name": "f", "description": "d", "format":
             {"type": "grammar", "grammar": )" +
            grammar + "}}}",
        R"({"type": "custom", "name": "f", "description": "d", "format":
             {"type": "grammar", "syntax": "regex", "definition": "a|b"}})" +
            std::string()}) {
    INFO(document);
    const ToolSet tools = ToolSet::parse("[" + document + "]");
    CHECK(tools[0].name == "f");
    CHECK(tools[0].description == "d");
    CHECK(tools[0].form == DocumentForm::custom);
    CHECK(tools[0].strict);
    CHECK(tools[0].parameters == tooldecode::text::parse_json(R"({"type": "object", "properties":
        {"input": {"type": "string", "pattern": "^(?:a|b)$"}}, "required": ["input"],
        "additionalProperties": false})"));
    CHECK(tools.notes().empty());
  }
  for (const char* text :
       {R"({"type": "custom", "custom": {"name": "f"}})", R"({"type": "custom", "name": "f"})",
        R"({"type": "custom", "custom": {"name": "f", "format": {"type": "text"}}})"}) {
    INFO(text);
    const ToolSet tools = ToolSet::parse(text);
    CHECK(tools[0].parameters["properties"]["input"] == Json{{"type", "string"}});
  }
}

TEST_CASE("ToolSet reads a function whose type is custom in another API as a function") {
  const ToolSet tools = ToolSet::parse(
      R"({"type": "custom", "name": "f", "input_schema": {"properties": {"a": {"type": "integer"}}}})");
  CHECK(tools[0].form == DocumentForm::mcp);
  CHECK(argument_names(tools[0]) == std::vector<std::string>{"a"});
}

TEST_CASE("ToolSet::parse of a malformed custom tool throws with the error's place") {
  CHECK(error_of(R"({"type": "text"})") == "none");
  CHECK(error_of("null") == "none");
  CHECK(error_of("3") == "malformed_document #/0/custom/format");
  CHECK(error_of("{}") == "malformed_document #/0/custom/format/type");
  CHECK(error_of(R"({"type": "json"})") == "malformed_document #/0/custom/format/type");
  CHECK(error_of(R"({"type": "grammar"})") == "malformed_document #/0/custom/format/syntax");
  CHECK(error_of(R"({"type": "grammar", "grammar": []})") ==
        "malformed_document #/0/custom/format/grammar");
  CHECK(error_of(R"({"type": "grammar", "grammar": {"syntax": "regex"}})") ==
        "malformed_document #/0/custom/format/grammar/definition");
  CHECK(error_of(R"({"type": "grammar", "syntax": "bnf", "definition": "a"})") ==
        "malformed_document #/0/custom/format/syntax");
  CHECK(
      error_of(R"({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}})") ==
      "unsupported_keyword #/0/custom/format/grammar/syntax");
  const std::string place = " #/0/custom/format/grammar/definition";
  const auto regex        = [](const std::string& definition) {
    return error_of(R"({"type": "grammar", "grammar": {"syntax": "regex", "definition": )" +
                           Json(definition).text() + "}}");
  };
  CHECK(regex("^a(b|c)*$") == "none");
  CHECK(regex("a(") == "malformed_pattern" + place);
  CHECK(regex("a)|(b") == "malformed_pattern" + place);  // brackets around it would make it valid
  CHECK(regex("(a)\\1") == "unsupported_pattern" + place);
  try {
    static_cast<void>(ToolSet::parse(R"([{"type": "custom", "custom": "f"}])"));
    FAIL("no object");
  } catch (const Error& error) {
    CHECK(error.where() == "#/0/custom");
  }
}
