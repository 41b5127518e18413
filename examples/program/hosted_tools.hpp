/// \file
/// HostedTools: tools of MCP servers that `serve` runs itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/json.hpp>
#include <program/mcp_server.hpp>

namespace program {

/// MCP servers with a label each. A request asks for the tools of one by an entry of `tools`, as in
/// the Responses API: `{"type": "mcp", "server_label": LABEL, "allowed_tools": [...]}`.
///
/// A server that has ended is started again by the next call. A result of more than `max_output`
/// bytes is a failure.
///
/// \par Threads     every member may run concurrently
/// \par Errors      constructor: Error{invalid_option} for `--mcp`: a server that does not start, a
///                  label or tool that two have, a tool that cannot be enforced
class HostedTools {
 public:
  static constexpr std::size_t max_output = std::size_t{1} << 20;

  /// Labels of servers by tool.
  using Labels = std::map<std::string, std::string, std::less<>>;
  /// Starts a call; a future without a state for a tool that has no runner here. Destroying the
  /// function cancels its calls.
  using Run =
      std::function<std::shared_future<tooldecode::ToolResult>(const tooldecode::ToolCall&)>;

  /// What a request asks for.
  struct Expanded {
    Labels labels;                     ///< of the tools that it may have run here
    std::vector<std::string> ignored;  ///< members of entries without effect, by place
    Json tools = nullptr;  ///< as the client wrote them; null without an entry of type `mcp`
  };

  /// \param servers  `LABEL=COMMAND`
  /// \param timeout  of a server's start and of each call
  /// \param calls    that each server may have at the same time
  HostedTools(std::span<const std::string> servers, std::chrono::milliseconds timeout,
              std::size_t calls = 32);
  HostedTools(const HostedTools&)            = delete;
  HostedTools& operator=(const HostedTools&) = delete;

  /// Replaces the entries of type `mcp` in a request's tools by the documents of their tools: the
  /// first takes the entry's place, and the others come last, so that the places of the client's
  /// tools stay.
  ///
  /// \par Errors      ApiError, naming the entry
  [[nodiscard]] Expanded expand(Json& body) const;

  /// For the calls of one request to these tools.
  [[nodiscard]] Run run(const Labels& tools) const;

 private:
  struct Server {
    Server(std::string run, std::chrono::milliseconds patience, std::size_t calls);

    tooldecode::ToolResult call(const tooldecode::ToolCall& call, const std::stop_token& stop);
    // Begins to start the process again, once for all calls that need it.
    void restart();

    std::string command;
    std::chrono::milliseconds timeout;
    std::mutex mutex;  // guards the members below, except the documents and the executor
    std::shared_ptr<McpServer> process;
    bool is_starting = false;
    std::string failure;  // of the last start
    std::condition_variable_any started;
    std::jthread starter;  // destroyed before what it uses
    Json documents;
    tooldecode::ToolExecutor executor;  // destroyed first
  };

  std::map<std::string, std::unique_ptr<Server>, std::less<>> servers_;  // by label
};

}  // namespace program
