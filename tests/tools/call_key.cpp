#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/string_sets.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

const ToolSet& documents() {
  static const ToolSet set = ToolSet::parse(R"([{"name": "f", "parameters": {
    "type": "object",
    "properties": {
      "a": {"type": "integer"},
      "b": {"type": "integer", "default": 2},
      "n": {"type": "string", "default": null},
      "o": {"type": "object", "properties": {
        "x": {"type": "number", "default": 1.0},
        "p": {"type": "object", "properties": {"y": {"type": "boolean", "default": false}}}}},
      "d": {"type": "object", "default": {"u": 1}, "properties": {
        "u": {"type": "integer"}, "v": {"type": "integer", "default": 5}}}},
    "required": ["a"]}}])");
  return set;
}

std::string key(std::string_view arguments) {
  return call_key({"f", tooldecode::text::parse_json(arguments)}, &documents()[0]);
}
std::string bare_key(std::string_view arguments) {
  return call_key({"f", tooldecode::text::parse_json(arguments)}, nullptr);
}

}  // namespace

TEST_CASE("call_key is the tool's name and its canonical arguments") {
  CHECK(bare_key("{}") == "f\n{}");
  CHECK(bare_key(R"({"b": [2.0, "x"], "a": 1e0})") == "f\n{\"a\":1,\"b\":[2,\"x\"]}");
  CHECK(key(R"({"a": 1})") ==
        "f\n"
        R"({"a":1,"b":2,"d":{"u":1,"v":5},"n":null})");
}

TEST_CASE("call_key is the same for calls that differ only in key order, spelling and defaults") {
  const std::string expected = key(R"({"a": 1})");
  for (const char* same :
       {R"({"a": 1, "b": 2})", R"({"b": 2, "a": 1.0})", R"({"a": 1, "n": null})",
        R"({"d": {"u": 1}, "a": 1})", R"({"d": {"v": 5.0, "u": 1}, "b": 2e0, "a": 1})"}) {
    INFO(same);
    CHECK(key(same) == expected);
  }
  CHECK(key(R"({"a": 1, "o": {}})") == key(R"({"o": {"x": 1}, "a": 1})"));
  CHECK(key(R"({"a": 1, "o": {"p": {}}})") == key(R"({"a": 1, "o": {"p": {"y": false}, "x": 1}})"));
}

TEST_CASE("call_key differs between calls that differ in a value") {
  const std::vector<std::string> calls = {
      R"({"a": 1})",
      R"({"a": 2})",
      R"({"a": "1"})",
      R"({"a": true})",
      R"({"a": 1, "b": 3})",
      R"({"a": 1, "b": null})",
      R"({"a": 1, "n": "null"})",
      R"({"a": 1, "o": {}})",  // has no default itself
      R"({"a": 1, "o": {"p": {}}})",
      R"({"a": 1, "o": null})",
      R"({"a": 1, "d": {}})",
      R"({"a": 1, "d": {"u": 2}})",
      R"({"a": 1, "z": 0})",
      R"({})",
  };
  for (const std::string& a : calls) {
    for (const std::string& b : calls) {
      INFO(a << " " << b);
      CHECK((key(a) == key(b)) == (a == b));
    }
  }
  CHECK(bare_key(R"({"a": 1})") != bare_key(R"({"a": 1, "b": 2})"));
}

TEST_CASE("call_key keeps a name apart from the arguments") {
  CHECK(call_key({"f\n{}", Json::object()}, nullptr) != call_key({"f", Json::object()}, nullptr));
  CHECK(call_key({"f", Json::object()}, nullptr) != call_key({"g", Json::object()}, nullptr));
}

TEST_CASE("call_key of arguments that cannot be written as JSON throws") {
  CHECK_THROWS_AS(call_key({"f", Json{{"a", "\xff"}}}, nullptr), Error);
  CHECK_THROWS_AS(call_key({"f", Json{{"a", std::numeric_limits<double>::infinity()}}}, nullptr),
                  Error);
}

TEST_CASE("call_key of random calls depends on values, not on defaults left out or key order") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
    Json properties  = Json::object();
    std::vector<std::pair<std::string, Json>> full;
    std::vector<bool> is_default;
    for (int i = 0; i < 6; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      const Json values[] = {below(3), 0.5, "x", nullptr, true, Json::array({below(2)})};
      const Json standard = values[below(6)];
      properties[name]    = Json{{"default", standard}};
      is_default.push_back(below(2) == 0);
      full.emplace_back(name, is_default.back() ? standard : Json(100 + below(5)));
    }
    const ToolSet set = ToolSet::from_json(
        Json{{"name", "f"}, {"parameters", {{"type", "object"}, {"properties", properties}}}});
    Json written = Json::object();
    for (const auto& [name, value] : full) written[name] = value;
    const std::string expected = call_key({"f", written}, &set[0]);

    std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
    std::shuffle(order.begin(), order.end(), random);
    Json shorter = Json::object();
    for (const std::size_t i : order) {
      if (is_default[i] && below(2) == 0) continue;
      const Json& value      = full[i].second;
      shorter[full[i].first] = value.is_number_integer() ? Json(value.get<double>()) : value;
    }
    CHECK(call_key({"f", shorter}, &set[0]) == expected);
    shorter[full[order[0]].first] = "another";
    CHECK(call_key({"f", shorter}, &set[0]) != expected);
  }
}

TEST_CASE("any_arguments_part of a tool's call keys is any_arguments_key of that tool alone") {
  for (const std::string name : {"f", "a b", "two\nlines", "f\n"}) {
    CAPTURE(name);
    for (const char* arguments : {"{}", R"({"a": "\n"})", R"({"b": [1, null]})"}) {
      const std::string key = call_key({name, tooldecode::text::parse_json(arguments)}, nullptr);
      CHECK(any_arguments_part(key) == any_arguments_key(name));
      CHECK(any_arguments_part(key) != any_arguments_key(name + 'x'));
    }
    CHECK(any_arguments_part(any_arguments_key(name)) == any_arguments_key(name));
  }
  CHECK(any_arguments_part("").empty());
  CHECK(any_arguments_part("no key").empty());
}

TEST_CASE(
    "call_key tells integers beyond 64 bits apart, and is the same with and without a default") {
  const ToolSet large =
      ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", "properties": {
    "n": {"type": "integer", "default": 18446744073709551617}, "a": {"type": "integer"}}}}])");
  const auto of = [&](std::string_view arguments) {
    text::ValueReader reader(arguments, text::ValueReader::Language::json, Errc::malformed_call);
    reader.keep_integers();
    return call_key({"f", reader.only_value()}, &large[0]);
  };
  CHECK(of("{}") == of(R"({"n": 18446744073709551617})"));
  CHECK(of("{}") == "f\n{\"n\":18446744073709551617}");
  CHECK(of("{}") != of(R"({"n": 18446744073709551618})"));
  CHECK(of(R"({"a": 1000000000000000000000})") == of(R"({"a": 1e21})"));
  CHECK(of(R"({"a": 1000000000000000000001})") != of(R"({"a": 1e21})"));
}
