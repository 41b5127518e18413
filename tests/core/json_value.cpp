#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/json_value.hpp>
#include <tooldecode/nlohmann.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/value_reader.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using Json = nlohmann::ordered_json;

TEST_CASE("JsonValue: keeps the order of members, as text and in a stream") {
  const JsonValue value = parse_json_value(R"({"b": 1, "a": [2, null]})");
  CHECK(value.text() == R"({"b":1,"a":[2,null]})");
  std::ostringstream out;
  out << value;
  CHECK(out.str() == value.text());
  CHECK(JsonValue().text() == "null");
  CHECK(JsonValue::object().text() == "{}");
}

TEST_CASE("JsonValue: a text that is not JSON is an error with its byte") {
  try {
    (void)parse_json_value(R"({"a": })");
    FAIL("was read");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::malformed_json);
    CHECK(std::string(error.what()).find("byte 6") != std::string::npos);
  }
}

TEST_CASE("JsonValue: copies are apart, and what was moved from is null") {
  JsonValue a   = Json{{"x", 1}};
  JsonValue b   = a;
  b.json()["x"] = 2;
  CHECK(a == Json{{"x", 1}});
  CHECK(b == Json{{"x", 2}});
  CHECK_FALSE(a == b);
  JsonValue c = std::move(b);
  CHECK(c["x"] == 2);
  CHECK(b.json().is_null());  // NOLINT(bugprone-use-after-move)
  b = std::move(c);
  CHECK(b->at("x") == 2);
  a = b;
  CHECK(a == b);
  Json moved{{"y", 3}};
  const JsonValue d = std::move(moved);
  CHECK(d.text() == R"({"y":3})");
}

TEST_CASE("JsonValue: a list in braces means what it means to nlohmann") {
  const ToolCall call{"f", {{"city", "Oslo"}, {"days", 2}}};
  CHECK(call.arguments == Json{{"city", "Oslo"}, {"days", 2}});
  CHECK(call.arguments.json().is_object());
  const std::vector<ToolCall> calls{{"f", {{"a", 1}}}, {"g", {}}};
  CHECK(calls[0].arguments.text() == R"({"a":1})");
  CHECK(calls[1].arguments.json().is_null());
}

TEST_CASE("JsonValue: converts to nlohmann's values, which may sort their members") {
  const JsonValue value = Json{{"b", 1}, {"a", 2}};
  const Json ordered    = value;
  CHECK(ordered.dump() == R"({"b":1,"a":2})");
  const nlohmann::json sorted = value;
  CHECK(sorted.dump() == R"({"a":2,"b":1})");
  CHECK(Json{{"inner", value}}.dump() == R"({"inner":{"b":1,"a":2}})");
}
