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
  CHECK(all.of(0).size() == 6);
  CHECK(&all.of(0) == &all.of(0));
  CHECK(four.of(0).size() == 4);
  CHECK(second.of(0).size() == 1);
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

TEST_CASE("CallOrders refuses zero orders") {
  CHECK_THROWS_AS((td::consistency::CallOrders{calls(), {.max_orders = 0}}), td::Error);
}
