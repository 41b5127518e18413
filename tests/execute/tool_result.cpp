#include <set>
#include <string_view>

#include <tooldecode/execute/tool_result.hpp>

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
