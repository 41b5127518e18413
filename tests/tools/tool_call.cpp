#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

ToolCall call(std::string_view arguments) {
  return {"f", tooldecode::text::parse_json(arguments)};
}

}  // namespace

TEST_CASE("ToolCall compares equal by value, not by spelling or key order") {
  CHECK(call(R"({"a": 1, "b": [2.0]})") == call(R"({"b": [2], "a": 1e0})"));
  CHECK(call(R"({"a": -0.0})") == call(R"({"a": 0})"));
  CHECK(call(R"({"a": 18446744073709551615})") == call(R"({"a": 18446744073709551615})"));
  CHECK(call(R"({"a": {"x": 1, "y": 2}})") == call(R"({"a": {"y": 2, "x": 1}})"));
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {R"({"a": 1})", R"({"a": "1"})"},
           {R"({"a": 1})", R"({"a": true})"},
           {R"({"a": 0})", R"({"a": null})"},
           {R"({"a": 0})", R"({"a": false})"},
           {R"({"a": 1})", R"({"b": 1})"},
           {R"({"a": 1})", R"({})"},
           {R"({"a": [1, 2]})", R"({"a": [2, 1]})"},
           {R"({"a": 9007199254740993})", R"({"a": 9007199254740992.0})"},
           {R"({"a": 18446744073709551615})", R"({"a": 18446744073709551616.0})"},
           {R"({"a": []})", R"({"a": {}})"}}) {
    INFO(a << " " << b);
    CHECK_FALSE(call(a) == call(b));
  }
  CHECK_FALSE(ToolCall{"f"} == ToolCall{"g"});
}

TEST_CASE("ToolCall::canonical_text writes name and arguments as canonical JSON") {
  CHECK(ToolCall{"f"}.canonical_text() == R"({"arguments":{},"name":"f"})");
  CHECK(call(R"({"b": 1.0, "a": [1.5, "é", {"z": null, "y": 1e20}]})").canonical_text() ==
        R"({"arguments":{"a":[1.5,"é",{"y":100000000000000000000,"z":null}],"b":1},"name":"f"})");
}

TEST_CASE("ToolCall::canonical_text does not depend on key order") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<std::string, int>> members;
    for (int i = 0; i < 8; ++i) members.emplace_back(std::string(1, static_cast<char>('a' + i)), i);
    ToolCall a{"f"}, b{"f"};
    std::shuffle(members.begin(), members.end(), random);
    for (const auto& [key, value] : members) a.arguments[key] = value;
    std::shuffle(members.begin(), members.end(), random);
    for (const auto& [key, value] : members) b.arguments[key] = static_cast<double>(value);
    CAPTURE(seed);
    CHECK(a.canonical_text() == b.canonical_text());
    CHECK(a == b);
  }
}
