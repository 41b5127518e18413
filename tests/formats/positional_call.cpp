#include <map>
#include <string>
#include <vector>

#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/catch.hpp>
#include <support/format_checks.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

const PositionalCall toolken  = PositionalCall::toolken();
const PositionalCall tool_dec = PositionalCall::tool_dec();

const ToolSet& documents() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "square", "parameters": {"type": "object", "properties": {
      "x": {"type": "number"}, "digits": {"type": "integer"}, "unit": {"type": "string"}},
      "required": ["x"]}},
    {"name": "square_root", "parameters": {"type": "object", "properties": {
      "a": {"type": "boolean"}, "b": {"type": "integer"}}, "required": ["b"],
      "additionalProperties": false}},
    {"name": "now"}])");
  return set;
}

int refused(const PositionalCall& format, const std::string& text,
            const ChoiceOptions& options = {}) {
  return test::refused(format, documents(), text, options);
}

std::string error_of(const PositionalCall& format, std::string_view text) {
  return test::error_of(format, documents(), text);
}

}  // namespace

TEST_CASE("PositionalCall writes and reads calls as ToolkenGPT and ToolDec do") {
  const std::vector<ToolCall> square{{"square", {{"x", 16}}}};
  CHECK(toolken.write(square) == "<square>(16)=");
  CHECK(tool_dec.write(square) == "<T>square(16)");
  CHECK(toolken.parse("The area is <square>(16)=", documents()) == square);
  CHECK(tool_dec.parse("The area is <T>square(16)", documents()) == square);
  const std::vector<ToolCall> all{{"square", {{"unit", "m, \"²\")="}, {"x", -0.5}, {"digits", 3}}}};
  CHECK(toolken.write(all, documents()) == "<square>(-0.5, 3, \"m, \\\"²\\\")=\")=");
  CHECK(toolken.parse(toolken.write(all, documents()), documents()) == all);
  CHECK(tool_dec.parse("<T>now()", documents()) == std::vector<ToolCall>{{"now"}});
  CHECK(toolken.parse("a < b, <b>(1)</b>, <square>", documents()).empty());
  CHECK(toolken.write({}).empty());
}

TEST_CASE("PositionalCall::write throws where arguments cannot be written without keys") {
  const auto cannot = [](const std::vector<ToolCall>& calls) {
    CHECK_THROWS_AS(toolken.write(calls, documents()), Error);
  };
  cannot({{"now"}, {"now"}});
  cannot({{"square", {{"x", 1}, {"unit", "m"}}}});  // `digits` is missing before `unit`
  cannot({{"square", {{"x", 1}, {"more", 1}}}});
}

TEST_CASE("PositionalCall takes text that only resembles a call as text, except after its mark") {
  CHECK(refused(toolken, "a < b <squared>(2)= <squ") == -1);
  CHECK(refused(toolken, "The area is <square>(16)=") == -1);
  CHECK(refused(toolken, "<square_root>(true, 2)=") == -1);
  CHECK(refused(toolken, "<square_root>(2)=") == 14);
  CHECK(refused(toolken, "<square>(16") == 11);
  CHECK(refused(toolken, "<square>(16)= 256") == 13);
  CHECK(refused(toolken, "<square>()=") == 9);
  CHECK(refused(toolken, "<square>(1, 2, \"m\", 4)=") == 18);
  CHECK(refused(toolken, "<square>(1,2)=", {}) == 11);
  CHECK(refused(tool_dec, "a < b <T") == -1);
  CHECK(refused(tool_dec, "so <T>square(16)") == -1);
  CHECK(refused(tool_dec, "so <T>cube(3)") == 6);
  const ChoiceOptions none{.choice = ToolChoice::none};
  CHECK(refused(toolken, "<square> of 5", none) == -1);
  CHECK(refused(toolken, "<square>(5", none) == 8);
  CHECK(refused(tool_dec, "<T>", none) == 2);
  const ChoiceOptions required{.choice = ToolChoice::required};
  CHECK(refused(toolken, "<now>()=", required) == -1);
  CHECK(refused(toolken, "a", required) == 0);
}

TEST_CASE("PositionalCall accepts leading keys only where they are the first parameters") {
  const auto options = [](std::vector<std::string> keys) {
    return ChoiceOptions{.choice = ToolChoice::named, .name = "square", .leading_keys = keys};
  };
  CHECK(refused(toolken, "<square>(1)=", options({"x", "digits"})) == 10);
  CHECK(refused(toolken, "<square>(1, 2)=", options({"x", "digits"})) == -1);
  CHECK_THROWS_AS(refused(toolken, "", options({"digits"})), Error);
}

TEST_CASE("PositionalCall allows as many arguments as combinations and conditions do") {
  const auto machine = [](const std::string& parameters) {
    return ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", )" + parameters +
                          "}}]");
  };
  const std::string three = R"("properties": {"a": {"type": "integer"}, "b": {"type": "string"},
      "c": {"type": "boolean"}})";
  const auto lengths      = [&](const std::string& more) {
    const ToolSet tools = machine(three + more);
    std::string taken;
    for (const char* list : {"", "1", "1, \"x\"", "1, \"x\", true"}) {
      const std::string text = "<T>f(" + std::string(list) + ")";
      taken +=
          test::refused(tool_dec, tools, text, {.choice = ToolChoice::required}) == -1 ? '1' : '0';
    }
    return taken;
  };
  CHECK(lengths("") == "1111");
  CHECK(lengths(R"(, "required": ["b"])") == "0011");
  CHECK(lengths(R"(, "minProperties": 1, "maxProperties": 2)") == "0110");
  CHECK(lengths(R"(, "dependentRequired": {"a": ["c"]})") == "1001");
  CHECK(lengths(R"(, "oneOf": [{"required": ["a"]}, {"required": ["b"]}])") == "0100");
  CHECK(lengths(R"(, "if": {"required": ["b"]}, "then": {"required": ["c"]})") == "1101");
  CHECK(lengths(R"(, "anyOf": [{"properties": {"a": {"minimum": 2}}}, {"required": ["c"]}])") ==
        "1001");
}

TEST_CASE("PositionalCall writes no argument after one without a value") {
  const auto tools = [](const std::string& required) {
    return ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", "properties":
      {"a": {"type": "integer"}, "b": {"enum": []}, "c": {}}, "required": [)" +
                          required + "]}}]");
  };
  for (const char* required : {"", R"("a")"}) {
    CHECK(test::refused(tool_dec, tools(required), "<T>f(1)") == -1);
    CHECK(test::refused(tool_dec, tools(required), "<T>f(1, 2)") >= 0);
  }
  for (const char* required : {R"("b")", R"("c")"}) {
    try {
      static_cast<void>(test::refused(tool_dec, tools(required), ""));
      FAIL("must throw");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unsatisfiable_schema);
      CHECK(error.where() == "#/0/parameters");
    }
  }
}

TEST_CASE("PositionalCall::parse of a broken call throws with its byte") {
  const std::map<std::string, std::string> cases = {
      {"<T>cube(3)", "byte 3"},      {"<T>square(", "byte 10"},    {"<T>square(1", "byte 11"},
      {"<T>square(1 2)", "byte 12"}, {"<T>now(1)", "byte 7"},      {"<T>square(x)", "byte 10"},
      {"<T>now() and", "byte 9"},    {"<T>square(1,,", "byte 12"}, {"<T>", "byte 3"}};
  for (const auto& [text, where] : cases) {
    INFO(text);
    CHECK(error_of(tool_dec, text) == "malformed_call " + where);
  }
}
