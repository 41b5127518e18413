/// \file
/// CommandTool: a tool runtime that runs a shell command for each call.
#pragma once

#include <array>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <poll.h>
#include <program/child_process.hpp>
#include <program/fields.hpp>
#include <program/json.hpp>
#include <program/send_now.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace program {

/// Runs `sh -c COMMAND` for each call. The call is JSON on standard input, `{"name", "arguments"}`;
/// standard output is the result. A non-zero exit status or too much output is a failure. On too
/// much output or a stop request the command and what it started are killed.
class CommandTool {
 public:
  explicit CommandTool(std::string command) : command_(std::move(command)) {}

  [[nodiscard]] tooldecode::ToolResult operator()(const tooldecode::ToolCall& call,
                                                  const std::stop_token& stop) const {
    using tooldecode::ToolStatus;
    const Json input{{"name", call.name}, {"arguments", call.arguments}};
    std::string output;
    int status = 0;
    try {
      ChildProcess child(command_);
      exchange(child, json_text(input) + '\n', output, stop);
      if (output.size() > max_output) child.kill_all();
      status = child.wait(stop);
    } catch (const std::system_error& error) {
      return {ToolStatus::failed, error.what()};
    }
    if (output.size() > max_output) {
      return {ToolStatus::failed,
              "the command wrote more than " + std::to_string(max_output) + " bytes"};
    }
    if (stop.stop_requested()) return {ToolStatus::cancelled, "the command was stopped"};
    if (!output.empty() && output.back() == '\n') output.pop_back();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {ToolStatus::ok, output};
    return {ToolStatus::failed, how_it_ended(status) + (output.empty() ? "" : ": " + output)};
  }

 private:
  static constexpr std::size_t max_output = std::size_t{16} << 20;

  static void exchange(ChildProcess& child, std::string_view input, std::string& output,
                       const std::stop_token& stop) {
    for (bool open = true; open && !stop.stop_requested();) {
      std::array<pollfd, 2> ready{pollfd{child.output(), POLLIN, 0},
                                  pollfd{child.input(), POLLOUT, 0}};
      poll(ready.data(), input.empty() ? 1 : 2, 10);
      if (!input.empty() && ready[1].revents != 0) {
        const ssize_t written = send_now(child.input(), input.data(), input.size());
        // A command that reads nothing closes its end; the rest is dropped.
        input.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : input.size());
        if (input.empty()) child.close_input();
      }
      if (ready[0].revents != 0) {
        std::array<char, 4096> part{};
        const ssize_t count = read(child.output(), part.data(), part.size());
        if (count > 0) output.append(part.data(), static_cast<std::size_t>(count));
        open = count > 0 && output.size() <= max_output;
      }
    }
    child.close_input();
  }

  std::string command_;
};

}  // namespace program
