#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/consistency/call_orders.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;

namespace {

const td::ToolCallFSM& calls() {
  static const td::VocabularyIndex masks{td::test::call_vocabulary()};
  static const td::ToolCallFSM of{
      masks,
      td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "y"]}, "c": {"type": "null"}},
        "required": ["a", "b", "c"]}}])"),
      td::PythonCall{},
      {.choice = td::ToolChoice::required}};
  return of;
}

}  // namespace

TEST_CASE("CallOrders::of makes the orders of a tool once, at most as many as asked for") {
  const td::consistency::CallOrders all{calls(), {}}, four{calls(), {.max_orders = 4}},
      second{calls(), {.only_order = 1}};
  CHECK(all.of(0)->size() == 6);
  CHECK(all.of(0) == all.of(0));
  CHECK(four.of(0)->size() == 4);
  CHECK(second.of(0)->size() == 1);

  const td::ToolCallFSM more{
      td::test::call_vocabulary(),
      td::ToolSet::parse(R"([{"name": "g", "parameters": {"type": "object", "properties": {
        "a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}, "d": {"type": "null"}},
        "required": ["a", "b", "c", "d"]}}])"),
      td::PythonCall{},
      {.choice = td::ToolChoice::required}};
  CHECK(td::consistency::CallOrders(more, {}).of(0)->size() == 6);  // of 24
  CHECK(td::consistency::CallOrders(more, {.max_orders = 12}).of(0)->size() == 12);
}

TEST_CASE(
    "CallOrders::encode uses the tokenizer's tokens if they spell the text, else the longest") {
  const std::string text = "f(a=";
  const auto spelled     = [&](const td::consistency::CallOrders& orders) {
    const std::vector<td::TokenId> tokens = orders.encode(text);
    CHECK(calls().vocabulary().decode(tokens) == text);
    return tokens;
  };
  const auto longest = spelled(td::consistency::CallOrders{calls(), {}});
  std::vector<td::TokenId> bytes;
  for (const char byte : text)
    bytes.push_back(td::consistency::CallOrders{calls(), {}}.encode(std::string(1, byte)).at(0));
  CHECK(spelled(td::consistency::CallOrders{
            calls(), {.encode = [&](std::string_view) { return bytes; }}}) == bytes);
  CHECK(spelled(td::consistency::CallOrders{calls(), {.encode = [&](std::string_view) {
                                              return std::vector<td::TokenId>{bytes[0]};
                                            }}}) == longest);
}

TEST_CASE("CallOrders::of keeps to the memory budget over many different calls") {
  const td::VocabularyIndex plain{td::test::call_vocabulary()};
  const td::ToolSet tools  = td::ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {}}, "required": ["a"]}}])");
  const auto empty         = td::ToolCallFSM(plain, tools, td::PythonCall{}).single_call(0).bytes();
  const std::size_t budget = empty + 100'000;
  const td::VocabularyIndex index{td::test::call_vocabulary(), budget};
  const td::ToolCallFSM answer{index, tools, td::PythonCall{}};
  const td::consistency::CallOrders orders{answer, {}};
  std::mt19937 random{5};
  std::size_t most = 0, renewed = 0;
  auto last = orders.of(0);
  for (int round = 0; round < 2000; ++round) {
    const auto now = orders.of(0);
    renewed += now != last;
    last             = now;
    std::string text = "a=";
    for (int depth = 0; depth < 14; ++depth) text += random() % 2 == 0 ? "[" : "{'a': ";
    REQUIRE_FALSE(now->begin(text, 0, answer.initial()).empty());
    most = std::max(most, now->bytes());
  }
  CHECK(most < 3 * budget);  // of a call in any order, and of one order
  CHECK(renewed > 2);
}

TEST_CASE("CallOrders refuses zero orders") {
  CHECK_THROWS_AS((td::consistency::CallOrders{calls(), {.max_orders = 0}}), td::Error);
}
