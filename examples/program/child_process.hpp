/// \file
/// ChildProcess: a shell command with access to its standard input and output.
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <program/send_now.hpp>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace program {

/// Runs `sh -c COMMAND`. The destructor kills it and all that it started, unless it has ended.
///
/// \par Errors      constructor: std::system_error if the system lacks resources
class ChildProcess {
 public:
  explicit ChildProcess(const std::string& command) {
    std::array<int, 2> to{}, from{};
    // No other ChildProcess may inherit the ends before they are marked.
    const std::lock_guard lock(live().mutex);
    // Unlike a pipe, a socket can be written without a signal when the command does not read.
    if (open_socket_pair(to) != 0) refuse("socketpair");
    ignore_closed_end(to[1]);
    if (open_pipe(from) != 0) {
      const int error = errno;
      close(to[0]), close(to[1]);
      errno = error;
      refuse("pipe");
    }
    child_ = fork();
    if (child_ == 0) {
      setpgid(0, 0);
      sigset_t none;  // a command of `serve`, which blocks signals, can be asked to end
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    const int error = errno;
    close(to[0]), close(from[1]);
    input_ = to[1], output_ = from[0];
    if (child_ < 0) {
      close_input(), close(output_);
      errno = error;
      refuse("fork");
    }
    setpgid(child_, child_);
    live().groups.insert(child_);
  }
  ~ChildProcess() {
    close_input();
    close(output_);
    if (!has_ended_) {
      kill_all();
      static_cast<void>(wait());
    }
    forget();
  }
  ChildProcess(const ChildProcess&)            = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Its standard input, a socket; -1 once it is closed.
  [[nodiscard]] int input() const noexcept { return input_; }
  /// Its standard output, a pipe.
  [[nodiscard]] int output() const noexcept { return output_; }

  void close_input() noexcept {
    if (input_ >= 0) close(std::exchange(input_, -1));
  }
  void kill_all() const noexcept { kill(-child_, SIGKILL); }
  /// Kills every ChildProcess that lives, for a process that ends without destructors.
  static void kill_every_one() {
    const std::lock_guard lock(live().mutex);
    for (const pid_t group : live().groups) kill(-group, SIGKILL);
  }
  /// Whether it has ended by now; what it started may live on.
  [[nodiscard]] bool has_ended() const noexcept {
    siginfo_t info{};
    return has_ended_ ||
           (waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == child_);
  }
  /// Waits for its end; returns its status as waitpid does.
  [[nodiscard]] int wait() noexcept {
    while (!has_ended_) {
      const pid_t ended = waitpid(child_, &status_, 0);
      if (ended == child_ || (ended < 0 && errno != EINTR)) forget();
    }
    return status_;
  }
  /// As wait; a stop request kills it and what it started.
  [[nodiscard]] int wait(const std::stop_token& stop) noexcept {
    const std::stop_callback killing(stop, [this] { kill_all(); });
    return wait();
  }

 private:
  struct Live {
    std::mutex mutex;
    std::set<pid_t> groups;
  };
  static Live& live() {
    static Live all;
    return all;
  }
  // Ends that no program started here inherits. macOS can mark them afterwards only.
  static int open_socket_pair(std::array<int, 2>& ends) noexcept {
#ifdef SOCK_CLOEXEC
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data());
#else
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0 ? close_at_exec(ends) : -1;
#endif
  }
  static int open_pipe(std::array<int, 2>& ends) noexcept {
#ifdef SOCK_CLOEXEC  // of the same systems
    return pipe2(ends.data(), O_CLOEXEC);
#else
    return pipe(ends.data()) == 0 ? close_at_exec(ends) : -1;
#endif
  }
  [[maybe_unused]] static int close_at_exec(const std::array<int, 2>& ends) noexcept {
    for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
    return 0;
  }
  // From now on the number may be another process's.
  void forget() noexcept {
    has_ended_ = true;
    const std::lock_guard lock(live().mutex);
    live().groups.erase(child_);
  }
  [[noreturn]] static void refuse(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
  }

  pid_t child_    = -1;
  int input_      = -1;
  int output_     = -1;
  int status_     = 0;
  bool has_ended_ = false;
};

inline std::string how_it_ended(int status) {
  return WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace program
