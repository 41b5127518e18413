#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/listed_arguments.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
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

namespace {

ToolSet tool_with(const std::string& parameters) {
  return ToolSet::parse(R"([{"name": "f", "parameters": )" + parameters + "}]");
}

}  // namespace

TEST_CASE("are_listed is false if a keyword depends on several properties") {
  const std::string listed = R"({"type": "object", "properties": {"a": {"anyOf": [{}]}},
    "required": ["a"], "description": "d")";
  CHECK(are_listed(tool_with(listed + "}")[0]));
  for (const char* more : {R"("not": {"required": ["b"]})", R"("anyOf": [{}])",
                           R"("minProperties": 1)", R"("dependentRequired": {"a": ["b"]})"}) {
    CHECK_FALSE(are_listed(tool_with(listed + ", " + more + "}")[0]));
  }
}

TEST_CASE("ListedArguments give each alternative all keys that it may have as members") {
  const ToolSet tools = tool_with(R"({"type": "object", "properties": {"b": {}, "a": {}}, "anyOf": [
      {"properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": true},
      {"properties": {"y": {"type": "integer"}}, "required": ["y"],
       "additionalProperties": {"type": "string"}}]})");
  schema::Reader reader(tools[0].parameters, parameter_rules(tools[0]));
  const ListedArguments listed(tools[0], reader);
  REQUIRE(listed.objects().size() == 2);
  for (const schema::ObjectForm& object : listed.objects()) {
    std::string names;
    for (const auto& member : object.members) names += member.name;
    CHECK(names == "baxy");
  }
}

TEST_CASE("find_argument_form gives one form for all alternatives") {
  const ToolSet tools = tool_with(R"({"type": "object", "oneOf": [
      {"properties": {"text": {"const": "x"}, "mixed": {"type": "string"}, "null": {"type": "string"},
                      "data": {"type": "integer"}, "one": {"type": "string"}}, "required": ["one"]},
      {"properties": {"text": {"type": "string"}, "mixed": {"type": "integer"},
                      "null": {"type": "null"}, "data": {"type": "boolean"}, "two": {}},
       "required": ["two"]}]})");
  const auto form     = [&](const char* key) { return find_argument_form(tools[0], key); };
  CHECK(form("text") == PlainForm::text);
  CHECK(form("one") == PlainForm::text);
  CHECK(form("mixed") == PlainForm::mixed);
  CHECK(form("two") == PlainForm::mixed);
  CHECK(form("null") == PlainForm::nullable);
  CHECK(form("data") == PlainForm::json);
  CHECK_FALSE(find_argument_form(tool_with(R"({"type": "object", "anyOf": 3})")[0], "a"));
}

TEST_CASE(
    "ListedArguments of a tool that is not strict keep unquoted strings and allow other values") {
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "strict": false, "parameters": {
      "type": "object", "properties": {"word": {"enum": ["a", "b"]}, "size": {"type": "integer"}}}}])");
  schema::Reader reader(tools[0].parameters, parameter_rules(tools[0]));
  const ListedArguments listed(tools[0], reader);
  REQUIRE(listed.objects().size() == 1);
  for (const auto& member : listed.objects()[0].members) CHECK(member.value == schema::any_form);
  CHECK(reader.forms[listed.plain_value("word", schema::any_form)].texts.size() == 1);
  CHECK_FALSE(reader.forms[listed.plain_value("word", schema::any_form)].null);
  CHECK(listed.plain_value("size", schema::any_form) == schema::any_form);
  CHECK(listed.plain_form("word") == PlainForm::text);
  CHECK(listed.plain_form("size") == PlainForm::mixed);
}

TEST_CASE("ListedArguments::plain_form refuses further keys with and without strings") {
  const auto error = [](const std::string& parameters) {
    const ToolSet tools = tool_with(parameters);
    schema::Reader reader(tools[0].parameters, parameter_rules(tools[0]));
    const ListedArguments listed(tools[0], reader);
    try {
      for (const schema::ObjectForm& object : listed.objects()) {
        for (const auto& others : object.others) (void)listed.plain_form(others);
      }
    } catch (const Error& e) {
      return std::string(name(e.code())) + " " + e.where();
    }
    return std::string("none");
  };
  CHECK(error(R"({"type": "object", "patternProperties": {"^a": {"type": "string"},
                  "^b": {"type": "integer"}}})") == "none");
  CHECK(error(R"({"type": "object", "patternProperties": {"^a": {}}, "anyOf": [
                  {"minProperties": 2, "additionalProperties": {"type": "string"}},
                  {"maxProperties": 1, "additionalProperties": {"type": "integer"}}]})") ==
        "unsupported_keyword #/0/parameters/patternProperties");
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
