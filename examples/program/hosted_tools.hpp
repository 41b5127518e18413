/// \file
/// HostedTools: tools of MCP servers that `serve` runs itself.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/json.hpp>
#include <program/mcp_server.hpp>

namespace program {

/// MCP servers with a label each. A request asks for the tools of one by an entry of `tools`, as in
/// the Responses API: `{"type": "mcp", "server_label": LABEL, "allowed_tools": [...]}`.
///
/// \par Threads     every member may run concurrently
/// \par Errors      constructor: Error{invalid_option} for `--mcp`: a server that does not start, a
///                  label or tool that two have; what ToolSet refuses of a server's tools
class HostedTools {
 public:
  /// Labels of servers by tool.
  using Labels = std::map<std::string, std::string, std::less<>>;
  /// Starts a call; without a state for a tool that nobody here runs. A call that runs ends with
  /// the function.
  using Run =
      std::function<std::shared_future<tooldecode::ToolResult>(const tooldecode::ToolCall&)>;

  /// What a request asks for.
  struct Expanded {
    Labels labels;         ///< of the tools that it may have run here
    Json tools = nullptr;  ///< as the client wrote them; null without an entry of type `mcp`
  };

  /// \param servers  `LABEL=COMMAND`
  /// \param timeout  of a server's start and of each call
  HostedTools(std::span<const std::string> servers, std::chrono::milliseconds timeout);

  /// Replaces the entries of type `mcp` in a request's tools by the documents of their tools: the
  /// first takes the entry's place, and the others come last, so that the places of the client's
  /// tools stay.
  ///
  /// \par Errors      ApiError, naming the entry
  [[nodiscard]] Expanded expand(Json& body) const;

  /// For the calls of one request to these tools.
  [[nodiscard]] Run run(const Labels& tools) const;

 private:
  std::map<std::string, std::shared_ptr<McpServer>, std::less<>> servers_;  // by label
  Labels labels_;
  std::unique_ptr<tooldecode::ToolExecutor> executor_;  // null without servers; destroyed first
};

}  // namespace program
