#include <memory>
#include <stop_token>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/client_loop.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::execute::ClientLoop;

namespace {

const std::string& text(const ClientLoop::Context& context) {
  return *static_cast<const std::string*>(context.get());
}

td::ToolResult echo(const td::ToolCall& call, std::stop_token) {
  return {td::ToolStatus::ok, call.name};
}

td::ToolSet tools() {
  return td::ToolSet::parse(R"([{"name": "a"}, {"name": "b"}])");
}

}  // namespace

TEST_CASE("ClientLoop gives the main model and the speculators the context of their turn") {
  td::ToolExecutor executor{echo, tools()};
  td::ClientModels<ClientLoop::Context> models;
  models.main = [](const ClientLoop::Context& context, std::stop_token) -> td::Reply {
    return {text(context), {{text(context)}}};
  };
  models.speculators = {[](const ClientLoop::Context& context, std::stop_token) -> td::Reply {
    return {"", {{text(context)}}};
  }};
  ClientLoop loop{models, executor, {}};
  for (const char* name : {"a", "b"}) {
    const td::ClientTurn turn = loop.run_turn(std::make_shared<const std::string>(name), {});
    CHECK(turn.reply.text == name);
    REQUIRE(turn.results.size() == 1);
    CHECK(turn.results[0].output == name);
  }
  CHECK(loop.submissions().told == 0);
}

TEST_CASE("ClientLoop refuses an empty main model") {
  td::ToolExecutor executor{echo, tools()};
  CHECK_THROWS_AS((ClientLoop{{}, executor, {}}), td::Error);
}
