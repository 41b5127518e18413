/// \file
/// A tool runtime that runs a command of the shell for each call.
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <fcntl.h>
#include <poll.h>
#include <program/fields.hpp>
#include <program/json.hpp>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace program {

/// Runs `sh -c COMMAND` per call: the call is JSON on its standard input, `{"name", "arguments"}`,
/// and its standard output is the result. Another exit status than 0 is a failure. Where a stop is
/// asked for, the command and what it started are killed.
class CommandTool {
 public:
  explicit CommandTool(std::string command) : command_(std::move(command)) {}

  [[nodiscard]] tooldecode::ToolResult operator()(const tooldecode::ToolCall& call,
                                                  const std::stop_token& stop) const {
    using tooldecode::ToolStatus;
    const Json input{{"name", call.name}, {"arguments", call.arguments}};
    std::array<int, 2> to{}, from{};
    // A socket, unlike a pipe, can be written to without a signal when the command does not read.
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to.data()) != 0) {
      return failure("socketpair");
    }
    if (pipe2(from.data(), O_CLOEXEC) != 0) {
      close(to[0]), close(to[1]);
      return failure("pipe");
    }
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", command_.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    close(to[0]), close(from[1]);
    if (child < 0) {
      close(to[1]), close(from[0]);
      return failure("fork");
    }
    setpgid(child, child);
    std::string output;
    const bool stopped = exchange(to[1], from[0], json_text(input) + '\n', output, stop);
    close(from[0]);
    if (stopped) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (stopped) return {ToolStatus::cancelled, "the command was stopped"};
    if (!output.empty() && output.back() == '\n') output.pop_back();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {ToolStatus::ok, output};
    const std::string how = WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                              : "signal " + std::to_string(WTERMSIG(status));
    return {ToolStatus::failed, how + (output.empty() ? "" : ": " + output)};
  }

 private:
  static tooldecode::ToolResult failure(std::string_view what) {
    return {tooldecode::ToolStatus::failed, std::string(what) + ": " + std::strerror(errno)};
  }

  // Writes the input and reads the output until it ends; true where a stop came first.
  static bool exchange(int to, int from, std::string_view input, std::string& output,
                       const std::stop_token& stop) {
    bool stopped = false;
    for (bool open = true; open && !stopped;) {
      std::array<pollfd, 2> ready{pollfd{from, POLLIN, 0}, pollfd{to, POLLOUT, 0}};
      poll(ready.data(), input.empty() ? 1 : 2, 10);
      if (!input.empty() && ready[1].revents != 0) {
        const ssize_t written = send(to, input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        // A command that reads nothing closes its end: what is left is nobody's.
        input.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : input.size());
        if (input.empty()) close(std::exchange(to, -1));
      }
      if (ready[0].revents != 0) {
        std::array<char, 4096> part{};
        const ssize_t count = read(from, part.data(), part.size());
        if (count > 0) output.append(part.data(), static_cast<std::size_t>(count));
        open = count > 0;
      }
      stopped = stop.stop_requested();
    }
    if (to >= 0) close(to);
    return stopped;
  }

  std::string command_;
};

}  // namespace program
