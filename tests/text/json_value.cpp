#include <cstdint>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/nlohmann.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using Json = nlohmann::ordered_json;

TEST_CASE("JsonValue keeps the order of members in text and on a stream") {
  const JsonValue value = parse_json_value(R"({"b": 1, "a": [2, null]})");
  CHECK(value.text() == R"({"b":1,"a":[2,null]})");
  std::ostringstream out;
  out << value;
  CHECK(out.str() == value.text());
  CHECK(JsonValue().text() == "null");
  CHECK(JsonValue::object().text() == "{}");
}

TEST_CASE("parse_json_value of malformed text throws an error that names the byte") {
  try {
    (void)parse_json_value(R"({"a": })");
    FAIL("was read");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::malformed_json);
    CHECK(std::string(error.what()).find("byte 6") != std::string::npos);
  }
}

TEST_CASE("JsonValue copies are independent and a moved-from value is null") {
  JsonValue a = Json{{"x", 1}};
  JsonValue b = a;
  b["x"]      = 2;
  CHECK(a == Json{{"x", 1}});
  CHECK(b == Json{{"x", 2}});
  CHECK_FALSE(a == b);
  JsonValue c = std::move(b);
  CHECK(c["x"] == 2);
  CHECK(b.is_null());  // NOLINT(bugprone-use-after-move)
  b = std::move(c);
  CHECK(b.at("x") == 2);
  a = b;
  CHECK(a == b);
  Json moved{{"y", 3}};
  const JsonValue d = std::move(moved);
  CHECK(d.text() == R"({"y":3})");
}

TEST_CASE("JsonValue from a braced list has the same meaning as nlohmann's value") {
  const ToolCall call{"f", {{"city", "Oslo"}, {"days", 2}}};
  CHECK(call.arguments == Json{{"city", "Oslo"}, {"days", 2}});
  CHECK(call.arguments.is_object());
  const std::vector<ToolCall> calls{{"f", {{"a", 1}}}, {"g", {}}};
  CHECK(calls[0].arguments.text() == R"({"a":1})");
  CHECK(calls[1].arguments.is_null());
}

TEST_CASE("JsonValue converts to nlohmann's ordered and sorted values") {
  const JsonValue value = Json{{"b", 1}, {"a", 2}};
  const Json ordered    = value;
  CHECK(ordered.dump() == R"({"b":1,"a":2})");
  const nlohmann::json sorted = value;
  CHECK(sorted.dump() == R"({"a":2,"b":1})");
  CHECK(Json{{"inner", value}}.dump() == R"({"inner":{"b":1,"a":2}})");
}

namespace {

// Values of all types, often equal; some keys need escapes in a JSON pointer.
Json random_value(std::mt19937& random, int depth) {
  const char* const keys[] = {"a", "b", "a/b", "~", "~1", "", "0"};
  switch (random() % (depth > 0 ? 9U : 7U)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<std::int64_t>(random() % 3) - 1;
    case 3:
      return static_cast<std::uint64_t>(random() % 3);
    case 4:
      return static_cast<double>(random() % 4) / 2;
    case 5:
      return std::int64_t{1} << (random() % 63);
    case 6:
      return keys[random() % std::size(keys)];
    case 7: {
      Json all = Json::array();
      for (auto i = random() % 4; i > 0; --i) all.push_back(random_value(random, depth - 1));
      return all;
    }
    default: {
      Json all = Json::object();
      for (auto i = random() % 4; i > 0; --i) {
        all[keys[random() % std::size(keys)]] = random_value(random, depth - 1);
      }
      return all;
    }
  }
}

}  // namespace

TEST_CASE("JsonValue compares, prints, changes and reads random values as nlohmann's value does") {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const Json a = random_value(random, 3), b = random_value(random, 3);
    CAPTURE(round, a.dump(), b.dump());
    const JsonValue own = a, other = b;
    REQUIRE(Json(own) == a);
    REQUIRE((own == other) == (a == b));
    REQUIRE(own.text() == a.dump());
    REQUIRE(own.text({.indent = 2}) == a.dump(2));
    REQUIRE(own.type_name() == std::string(a.type_name()));
    REQUIRE(own.size() == a.size());
    REQUIRE(parse_json_value(own.text()) == own);
    std::vector<std::string> items;
    for (const JsonValue& item : own) items.push_back(item.text());
    std::vector<std::string> expected;
    for (const Json& item : a) expected.push_back(item.dump());
    REQUIRE(items == expected);
    if (a.is_object()) {
      for (const char* key : {"a", "b", "~"}) {
        REQUIRE(own.contains(key) == a.contains(key));
        REQUIRE(own.value(key, JsonValue(7)).text() == (a.contains(key) ? a[key] : Json(7)).dump());
        Json changed          = a;
        JsonValue own_changed = own;
        changed[key]          = b;
        own_changed[key]      = other;
        REQUIRE(own_changed.text() == changed.dump());
        REQUIRE(own_changed.erase(key) == changed.erase(key));
        REQUIRE(own_changed.text() == changed.dump());
      }
    }
    if (a.is_array() && !a.empty()) {
      Json changed          = a;
      JsonValue own_changed = own;
      changed.erase(a.size() / 2);
      own_changed.erase(a.size() / 2);
      changed.push_back(b);
      own_changed.push_back(other);
      REQUIRE(own_changed.text() == changed.dump());
    }
  }
}

TEST_CASE("JsonValue::find_at finds what nlohmann's JSON pointer finds") {
  std::mt19937 random(4);
  const char* const parts[] = {"/a", "/b", "/a~1b", "/~0", "/~01", "/", "/0", "/1", "/00", "/x"};
  int found                 = 0;
  for (int round = 0; round < 20000; ++round) {
    const Json document = random_value(random, 3);
    std::string pointer;
    for (auto i = random() % 3; i > 0; --i) pointer += parts[random() % std::size(parts)];
    CAPTURE(document.dump(), pointer);
    std::optional<Json> expected;
    try {
      expected = document.at(Json::json_pointer(pointer));
    } catch (const Json::exception&) {}
    const JsonValue own     = document;
    const JsonValue* actual = own.find_at(pointer);
    REQUIRE((actual != nullptr) == expected.has_value());
    if (actual) REQUIRE(*actual == *expected);
    found += actual != nullptr;
  }
  CHECK(found > 5000);
  CHECK(JsonValue().find_at("a") == nullptr);
}

TEST_CASE("JsonValue read as a type that it does not have throws an error that names both types") {
  const JsonValue value = parse_json_value(R"({"text": "a", "list": [1], "half": 1.5})");
  const auto what       = [](auto&& ask) -> std::string {
    try {
      ask();
    } catch (const Error& error) {
      CHECK(error.code() == Errc::malformed_json);
      return error.what();
    }
    return "nothing";
  };
  CHECK(what([&] { (void)value.at("text").get<int>(); }) ==
        "the value is string and must be number");
  CHECK(what([&] { (void)value.at("list").string(); }) == "the value is array and must be string");
  CHECK(what([&] { (void)value.at("none"); }) == "the object has no \"none\"");
  CHECK(what([&] { (void)value.at("list").at(1); }) == "the array has no item 1 (it has 1)");
  CHECK(what([&] { (void)value.at("text").at("x"); }) == "the value is string and must be object");
  CHECK(value.at("half").get<int>() == 1);
  CHECK(value.at("list").get<std::vector<double>>() == std::vector<double>{1});
  CHECK(value.value("text", "otherwise") == "a");
  CHECK(value.value("none", "otherwise") == "otherwise");
}

TEST_CASE("JsonValue compares integers by value across signedness and with doubles") {
  CHECK(JsonValue(1) == JsonValue(1U));
  CHECK(JsonValue(1) == 1.0);
  CHECK_FALSE(JsonValue(-1) == JsonValue(~std::uint64_t{0}));
  CHECK(JsonValue(~std::uint64_t{0}).text() == "18446744073709551615");
  CHECK_FALSE(JsonValue(1) == JsonValue("1"));
  CHECK_FALSE(JsonValue(0) == nullptr);
  CHECK(JsonValue() == nullptr);
}

TEST_CASE("JsonValue from a nlohmann value nested deeper than 200 throws an error") {
  Json deep = nullptr;
  for (int i = 0; i < 200; ++i) deep = Json::array({deep});
  CHECK(JsonValue(deep).text() == deep.dump());
  deep = Json::array({deep});
  CHECK_THROWS_AS(JsonValue(deep), Error);
}
