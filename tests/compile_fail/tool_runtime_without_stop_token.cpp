// expected-error: ToolRuntime: add 'ToolResult operator...const ToolCall&, std::stop_token.;', or
// expected-lines: 40
#include <stop_token>
#include <string>

#include <tooldecode/execute/tool_runtime.hpp>

struct MyTools {
#ifdef TOOLDECODE_EXPECT_ERROR
  std::string operator()(const tooldecode::ToolCall&) { return "4"; }
#else
  std::string operator()(const tooldecode::ToolCall&, std::stop_token) { return "4"; }
#endif
};

tooldecode::AnyToolRuntime make() {
  return tooldecode::make_tool_runtime(MyTools{});
}
