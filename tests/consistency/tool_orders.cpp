#include <string>
#include <vector>

#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>

#include <support/catch.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;
using namespace tooldecode::consistency;

namespace {

ToolCallFSM calls(bool hermes = false) {
  static const VocabularyIndex masks{test::call_vocabulary()};
  static const ToolSet tools = ToolSet::parse(R"([
    {"name": "f0", "parameters": {"type": "object", "properties": {
      "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "number"}},
      "required": ["c", "a"], "additionalProperties": true}},
    {"name": "f1", "parameters": {"type": "object", "properties": {}}}])");
  return hermes ? ToolCallFSM(masks, tools, JsonCall::hermes())
                : ToolCallFSM(masks, tools, PythonCall{});
}

// A branch that has read a text as one token.
OrderBranch read(const ToolOrders& orders, const ToolCallFSM& all, const std::string& text,
                 double log_probability, std::size_t order = 0) {
  auto branches = orders.begin("", 0, all.initial());
  branches[order].read(text, log_probability);
  branches[order].is_complete = !branches[order].calls.find_tool(branches[order].state);
  return branches[order];
}

}  // namespace

TEST_CASE("ToolOrders of a tool begin where its arguments begin") {
  const ToolOrders python(calls(), 0, 12, 0);
  CHECK(python.size() == 2);
  CHECK(python.opening() == "[f0(");
  CHECK(python.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(python.required() == std::vector<std::string>{"a", "c"});
  const auto branches = python.begin("", 0, calls().initial());
  REQUIRE(branches.size() == 2);
  CHECK(branches[0].calls.jump_forward(branches[0].state).starts_with("a="));
  CHECK(branches[1].calls.jump_forward(branches[1].state).starts_with("c="));
  CHECK(ToolOrders(calls(), 0, 1, 0).size() == 1);
  CHECK(ToolOrders(calls(), 1, 12, 0).size() == 1);
  for (const std::size_t order : {0U, 1U, 2U, 3U}) {
    const ToolOrders one(calls(), 0, 12, 0, order);
    REQUIRE(one.size() == 1);
    const auto branch = one.begin("", 0, calls().initial()).at(0);
    CHECK(branch.calls.jump_forward(branch.state).starts_with(order % 2 == 0 ? "a=" : "c="));
  }
  const ToolOrders hermes(calls(true), 0, 12, 0);
  CHECK(hermes.opening() == "<tool_call>\n{\"name\": \"f0\"");
}

TEST_CASE("ToolOrders::begin after more bytes keeps them only where every order can continue") {
  const ToolOrders orders(calls(), 0, 12, 0);
  CHECK(orders.begin("a=", 0, calls().initial()).empty());
  CHECK(ToolOrders(calls(), 0, 1, 0).begin("a='x", -1, calls().initial()).size() == 1);
  CHECK(ToolOrders(calls(), 1, 1, 0).begin(")", 0, calls().initial()).empty());
  const ToolOrders hermes(calls(true), 0, 12, 0);
  CHECK(hermes.begin(", \"arguments\": {\"", 0, calls(true).initial()).size() == 2);
}

TEST_CASE("ToolOrders::read of a complete branch gives all values, also of undocumented keys") {
  const ToolOrders orders(calls(), 0, 12, 0);
  const Candidate candidate =
      orders.read(1, read(orders, calls(), "c=1e1, a='x', z=True)", -0.5, 1));
  CHECK(candidate.is_complete);
  CHECK(candidate.order == 1);
  REQUIRE(candidate.values.size() == 3);
  CHECK(candidate.values[0].key == "c");
  CHECK(candidate.values[0].value == 10.0);
  CHECK(candidate.values[0].log_probability == -0.5);
  CHECK(candidate.values[2].key == "z");
  CHECK(candidate.values[2].value == true);
  CHECK(candidate.values[2].log_probability == 0);
}

TEST_CASE("ToolOrders::read of a branch that was cut keeps the values that are complete") {
  const ToolOrders orders(calls(), 0, 12, 0);
  const auto keys = [&](const std::string& text, std::size_t order) {
    std::string result;
    for (const auto& value : orders.read(order, read(orders, calls(), text, -1, order)).values) {
      result += value.key + value.value.text();
    }
    return result;
  };
  CHECK(keys("a='x', c=12", 0) == "a\"x\"");  // more digits could follow
  CHECK(keys("a='x', c=12,", 0) == "a\"x\"c12");
  CHECK(keys("a='x'", 0) == "a\"x\"");
  CHECK(keys("a='x", 0).empty());
  CHECK(keys("c=-1.5, a=", 1) == "c-1.5");
}

TEST_CASE("ToolOrders::read of a cut branch takes no string without quotes for another value") {
  const VocabularyIndex masks{test::call_vocabulary()};
  const ToolSet tools = ToolSet::parse(R"([{"name": "f0", "parameters": {"type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "string"}},
    "required": ["a", "b", "c"]}}])");
  const ToolCallFSM all(masks, tools, XmlCall::qwen3_coder());
  const ToolOrders orders(all, 0, 1, 0);
  const auto argument = [](const std::string& key, const std::string& value) {
    return "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
  };
  for (const std::string text : {"12345", "5 apples", "true love", "null island"}) {
    CAPTURE(text);
    const auto candidate = orders.read(
        0, read(orders, all, "\n" + argument("a", text) + argument("b", "12") + "<parameter=c>\nx",
                -1));
    CHECK_FALSE(candidate.is_complete);
    for (const auto& value : candidate.values) {
      CHECK(value.key == "b");
      CHECK(value.value == 12);
    }
  }
}
