#include <algorithm>
#include <set>
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

const ToolSet& documents() {
  static const ToolSet set = ToolSet::parse(R"([{"name": "f0", "parameters": {"type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "array"}},
    "required": ["a", "b"]}}])");
  return set;
}

template <class F>
OrderBranch branch_after(const F& format, const std::string& opening) {
  const ToolCallFSM calls =
      ToolCallFSM(VocabularyIndex(test::call_vocabulary()), documents(), format)
          .single_call(0, {"b", "a"}, true);
  return {.calls = calls,
          .state = *calls.advance_bytes(calls.initial(), opening),
          .outer = std::nullopt};
}

}  // namespace

TEST_CASE("OrderBranch::read assigns each byte to the argument whose value it belongs to") {
  OrderBranch branch = branch_after(PythonCall{}, "[f0(");
  CHECK(branch.read("b=1", -1) == 3);
  CHECK(branch.read("2, a", -2) == 4);
  CHECK(branch.read("='x, y=", -4) == 7);
  CHECK(branch.read("'", -8) == 1);
  REQUIRE(branch.values.size() == 2);
  CHECK(branch.values[0].argument == 1);
  CHECK(branch.values[0].text == "12,");  // with the byte that ended it
  CHECK(branch.values[0].log_probability == -3);
  CHECK(branch.values[0].tokens == 2);
  CHECK(branch.values[1].argument == 0);
  CHECK(branch.values[1].text == "'x, y='");
  CHECK(branch.values[1].log_probability == -12);
  CHECK(branch.values[1].tokens == 2);
  CHECK(branch.text == "b=12, a='x, y='");
}

TEST_CASE("OrderBranch::read ends with the arguments, also inside a token") {
  OrderBranch python = branch_after(PythonCall{}, "[f0(");
  CHECK(python.read("b=1, a='', c=[1, 'x'])], [f0(", 0) == 22);
  CHECK(python.text == "b=1, a='', c=[1, 'x'])");
  CHECK(python.values[2].text == "[1, 'x']");
  CHECK_FALSE(python.calls.find_tool(python.state));
  CHECK(python.read("more", 0) == 0);

  OrderBranch hermes     = branch_after(JsonCall::hermes(), "<tool_call>\n{\"name\": \"f0\"");
  const std::string text = ", \"arguments\": {\"b\": 1, \"a\": \"}}\"}}";
  CHECK(hermes.read(text + "\n</tool_call>", 0) == text.size());
  CHECK(hermes.values[1].text == "\"}}\"");
}

using tooldecode::parameter_order;
using tooldecode::parameter_orders;

TEST_CASE("parameter_orders gives the documented order first, then its reverse") {
  const auto orders = parameter_orders(3, 12);
  REQUIRE(orders.size() == 6);
  CHECK(orders[0] == std::vector<std::size_t>{0, 1, 2});
  CHECK(orders[1] == std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("parameter_orders of no parameter or one has one order") {
  CHECK(parameter_orders(0, 12).size() == 1);
  CHECK(parameter_orders(1, 12) == std::vector<std::vector<std::size_t>>{{0}});
  CHECK(parameter_orders(4, 0).size() == 1);
  CHECK(parameter_orders(66, 9).size() == 9);
}

TEST_CASE("parameter_orders are distinct permutations, no more than exist") {
  for (std::size_t count = 0; count <= 7; ++count) {
    std::size_t possible = 1;
    for (std::size_t i = 2; i <= count; ++i) possible *= i;
    for (const std::size_t wanted : {1U, 2U, 5U, 12U, 24U, 200U}) {
      INFO(count << " parameters, " << wanted << " orders");
      const auto orders = parameter_orders(count, wanted, 3);
      CHECK(orders.size() == std::min<std::size_t>(wanted, possible));
      CHECK(std::set(orders.begin(), orders.end()).size() == orders.size());
      for (auto order : orders) {
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < count; ++i) REQUIRE(order[i] == i);
      }
    }
  }
  CHECK(parameter_orders(40, 12).size() == 12);
}

TEST_CASE("parameter_orders with fewer orders are the first of more, the same for the same seed") {
  const auto all = parameter_orders(5, 30, 9);
  for (std::size_t count = 1; count <= 30; ++count) {
    CHECK(parameter_orders(5, count, 9) ==
          std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)));
  }
  CHECK(parameter_orders(6, 30, 1) != parameter_orders(6, 30, 2));
}

TEST_CASE("parameter_order at a place is that of the list, which repeats after its end") {
  for (std::size_t count = 0; count <= 5; ++count) {
    const auto all = parameter_orders(count, 200, 7);
    for (std::size_t place = 0; place < 2 * all.size() + 3; ++place) {
      CAPTURE(count, place);
      CHECK(parameter_order(count, place, 7) == all[place % all.size()]);
    }
  }
}

TEST_CASE("parameter_orders puts each parameter first about equally often") {
  // 4,998 shuffles: each of 10 counts has mean 499.8 and standard deviation 21.2. A bound of five
  // deviations errs once in 170,000 runs over ten counts, and the seed is fixed.
  const auto orders = parameter_orders(10, 5000, 4);
  std::vector<int> first(10);
  for (std::size_t i = 2; i < orders.size(); ++i) ++first[orders[i][0]];
  for (const int count : first) CHECK(std::abs(count - 499.8) < 106);
}

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
