#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

#include <tooldecode/execute/tool_runtime.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("name of each ToolStatus is its enumerator") {
  std::set<std::string_view> names;
  for (const ToolStatus status :
       {ToolStatus::ok, ToolStatus::failed, ToolStatus::timed_out, ToolStatus::cancelled}) {
    names.insert(name(status));
  }
  CHECK(names == std::set<std::string_view>{"ok", "failed", "timed_out", "cancelled"});
}

TEST_CASE("ToolResult compares equal by status and output") {
  CHECK(ToolResult{}.status == ToolStatus::ok);
  CHECK(ToolResult{ToolStatus::ok, "a"} == ToolResult{ToolStatus::ok, "a"});
  CHECK_FALSE(ToolResult{ToolStatus::ok, "a"} == ToolResult{ToolStatus::failed, "a"});
  CHECK_FALSE(ToolResult{ToolStatus::ok, "a"} == ToolResult{ToolStatus::ok, "b"});
}

namespace {

const auto with_result = [](const ToolCall& call, std::stop_token) {
  return ToolResult{ToolStatus::failed, call.name};
};
const auto with_text     = [](const ToolCall& call, std::stop_token) { return call.name + "!"; };
const auto with_callback = [](const ToolCall& call, std::stop_token, ToolDone done) {
  done({ToolStatus::ok, call.name});
};

template <class R>
std::optional<ToolResult> run(R runtime, std::stop_token stop = {}) {
  std::optional<ToolResult> result;
  make_tool_runtime(std::move(runtime))({"f"}, stop, [&](ToolResult r) { result = r; });
  return result;
}

}  // namespace

TEST_CASE("SyncToolRuntime and AsyncToolRuntime tell both kinds of runtime apart") {
  STATIC_REQUIRE(SyncToolRuntime<decltype(with_result)>);
  STATIC_REQUIRE(SyncToolRuntime<decltype(with_text)>);
  STATIC_REQUIRE(AsyncToolRuntime<decltype(with_callback)>);
  STATIC_REQUIRE_FALSE(AsyncToolRuntime<decltype(with_text)>);
  STATIC_REQUIRE_FALSE(SyncToolRuntime<decltype(with_callback)>);
  const auto neither = [](int) {};
  const auto number  = [](const ToolCall&, std::stop_token) { return std::optional<int>(); };
  STATIC_REQUIRE_FALSE(ToolRuntime<decltype(neither)>);
  STATIC_REQUIRE_FALSE(ToolRuntime<decltype(number)>);
}

TEST_CASE("ToolRuntime of any kind can be run with a callback") {
  CHECK(run(with_result) == ToolResult{ToolStatus::failed, "f"});
  CHECK(run(with_text) == ToolResult{ToolStatus::ok, "f!"});
  CHECK(run(with_callback) == ToolResult{ToolStatus::ok, "f"});
  CHECK(run([](const ToolCall&, std::stop_token) { return "text"; }) ==
        ToolResult{ToolStatus::ok, "text"});
  CHECK(run([word = std::make_unique<std::string>("moved")](const ToolCall&, std::stop_token) {
          return *word;
        }) == ToolResult{ToolStatus::ok, "moved"});
}

TEST_CASE("ToolRuntime receives the stop token, and its exceptions come back") {
  std::stop_source source;
  source.request_stop();
  const auto asks = [](const ToolCall&, std::stop_token stop) {
    return std::string(stop.stop_requested() ? "stopped" : "free");
  };
  CHECK(run(asks)->output == "free");
  CHECK(run(asks, source.get_token())->output == "stopped");
  CHECK_THROWS_AS(
      run([](const ToolCall&, std::stop_token) -> std::string { throw std::runtime_error("x"); }),
      std::runtime_error);
}
