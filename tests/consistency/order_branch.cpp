#include <string>
#include <vector>

#include <tooldecode/consistency/order_branch.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>

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
