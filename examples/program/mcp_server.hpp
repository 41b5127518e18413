/// \file
/// McpServer: a Model Context Protocol server on standard input and output, as a tool runtime.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/version.hpp>

#include <poll.h>
#include <program/child_process.hpp>
#include <program/fields.hpp>
#include <program/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

namespace program {

/// Starts a command that is an MCP server, asks for its tools, and runs calls on it, several at the
/// same time. The server's own requests are declined, except pings. Malformed lines are counted,
/// and the next failure reports the first. A call fails if the server has ended or ends meanwhile;
/// if the server does not answer, the call lasts until a stop is requested.
///
/// \par Threads     calls may run concurrently
/// \par Errors      constructor: Error{invalid_option} for `--mcp` if the command cannot be run,
///                  ends, does not answer in time, or does not answer with a list of tools
/// \par Source      Model Context Protocol, version 2025-06-18: lifecycle, stdio, tools
class McpServer {
 public:
  /// \param stop  ends the start
  McpServer(const std::string& command, std::chrono::milliseconds patience,
            const std::stop_token& stop = {});
  ~McpServer();
  McpServer(const McpServer&)            = delete;
  McpServer& operator=(const McpServer&) = delete;

  /// The documents of its tools, an array.
  [[nodiscard]] const Json& tools() const noexcept { return tools_; }

  /// Whether it runs no more calls.
  [[nodiscard]] bool has_ended();

  [[nodiscard]] tooldecode::ToolResult operator()(const tooldecode::ToolCall& call,
                                                  const std::stop_token& stop);

 private:
  // A longer line ends the server.
  static constexpr std::size_t max_line = std::size_t{16} << 20;
  // If a server reads no messages, those beyond this size are dropped.
  static constexpr std::size_t max_queue = std::size_t{1} << 20;

  static ChildProcess start(const std::string& command);
  [[noreturn]] void refuse(const std::string& what) const;

  // Replaces an answer that does not come.
  static Json no_answer(std::string text) { return {{"missing", std::move(text)}}; }
  static std::string failure_of(const Json& answer);
  // The text of a tool's result; other content as JSON.
  static std::string text_of(const Json& result);

  Json request(const char* method, Json parameters, const std::stop_token& stop);

  // Writes a complete message. False if the server has ended or a stop came first; if the message
  // was begun by then, nothing more is written. Not for the reader: a server that waits for its
  // output to be read may not read what is written here.
  bool send_message(const Json& message, const std::stop_token& stop);
  // Leaves a message to the reader and to the next that writes; waits for nothing.
  void queue(const Json& message);
  // Writes as much of the queue as the server takes now; returns whether that is all. Needs
  // `writing_`.
  bool write_queue();
  // Bytes that the server takes now; closes its input if it takes none any more.
  std::size_t write_some(std::string_view text);
  void close_input();

  void read_all(const std::stop_token& quit);

  void take(std::string_view line);

  std::string command_;
  Json tools_ = Json::array();
  ChildProcess child_;
  std::mutex writing_;  // locked before `mutex_`; the reader only tries it
  std::mutex mutex_;    // guards the members below
  std::condition_variable_any answered_;
  std::int64_t last_ = 0;
  std::map<std::int64_t, std::optional<Json>> waiting_;
  std::optional<std::string> ending_{};
  bool is_closed_ = false;  // its input
  std::string queue_;       // not yet written
  std::size_t rubbish_ = 0;
  std::string first_rubbish_;
  std::jthread reader_;  // joined first
};

}  // namespace program
