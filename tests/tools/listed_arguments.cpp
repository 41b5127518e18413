#include <string>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/listed_arguments.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

TEST_CASE("argument_schema is the property's schema, or that of other properties") {
  const ToolSet tools        = ToolSet::parse(R"([
    {"name": "f", "parameters": {"type": "object", "properties": {"a/b": {"type": "integer"}},
                                 "additionalProperties": {"type": "null"}}},
    {"name": "g"}])");
  const ArgumentSchema known = argument_schema(tools[0], "a/b");
  CHECK(*known.schema == tooldecode::JsonValue{{"type", "integer"}});
  CHECK(known.pointer == "#/0/parameters/properties/a~1b");
  const ArgumentSchema other = argument_schema(tools[0], "c");
  CHECK(*other.schema == tooldecode::JsonValue{{"type", "null"}});
  CHECK(other.pointer == "#/0/parameters/additionalProperties");
  CHECK(*argument_schema(tools[1], "c").schema == false);
}

TEST_CASE("check_listed_arguments refuses keywords about all arguments together") {
  const auto code = [](const std::string& more) {
    const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
      "properties": {"a": {"type": "integer"}})" +
                                         more + "}}]");
    Grammar grammar;
    SchemaCompiler compiler(grammar, tools[0].parameters);
    try {
      check_listed_arguments(compiler, tools[0]);
    } catch (const Error& e) {
      return std::string(name(e.code())) + " " + e.where();
    }
    return std::string("none");
  };
  CHECK(code("") == "none");
  CHECK(code(R"(, "enum": [{"a": 1}])").starts_with("unsupported_keyword #/0/parameters"));
  CHECK(code(R"(, "not": {"required": ["a"]})") == "unsupported_keyword #/0/parameters/not");
}

TEST_CASE(
    "plain_argument_schema of a tool that is not strict keeps documented strings as strings") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "strict": false, "parameters": {
      "type": "object", "properties": {"word": {"enum": ["a", "b"]}, "size": {"type": "integer"},
        "when": {"type": ["string", "null"]}, "either": {"type": ["string", "integer"]},
        "odd": {"type": "no_such_type"}}, "additionalProperties": false}},
      {"name": "g", "parameters": {"properties": {"word": {"enum": ["a", "b"]}}}}])");
  const auto schema = [&](const char* key) { return *plain_argument_schema(tools[0], key).schema; };
  CHECK(schema("word") == Json{{"type", "string"}});
  CHECK(schema("when") == Json{{"type", {"string", "null"}}});
  for (const char* any : {"size", "either", "odd"}) CHECK(schema(any) == Json::object());
  CHECK(schema("more") == true);
  CHECK(plain_argument_schema(tools[0], "word").pointer == "#/0/parameters/properties/word");
  CHECK(*plain_argument_schema(tools[1], "word").schema == Json{{"enum", {"a", "b"}}});
}
