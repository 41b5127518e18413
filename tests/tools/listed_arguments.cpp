#include <string>

#include <tooldecode/tools/listed_arguments.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::tools;

TEST_CASE("An argument's schema is its property's, or that of any other") {
  const ToolSet tools        = ToolSet::parse(R"([
    {"name": "f", "parameters": {"type": "object", "properties": {"a/b": {"type": "integer"}},
                                 "additionalProperties": {"type": "null"}}},
    {"name": "g"}])");
  const ArgumentSchema known = argument_schema(tools[0], "a/b");
  CHECK(*known.schema == nlohmann::ordered_json{{"type", "integer"}});
  CHECK(known.pointer == "#/0/parameters/properties/a~1b");
  const ArgumentSchema other = argument_schema(tools[0], "c");
  CHECK(*other.schema == nlohmann::ordered_json{{"type", "null"}});
  CHECK(other.pointer == "#/0/parameters/additionalProperties");
  CHECK(*argument_schema(tools[1], "c").schema == false);
}

TEST_CASE("What is said of all arguments together cannot be written one by one") {
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
