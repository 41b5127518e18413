/// \file
/// ServerProcess: a `tooldecode serve` that this process starts and stops.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tool_latency {

/// The given program, or the one built beside this one.
inline std::filesystem::path program_that_serves(const std::string& given) {
  if (!given.empty()) return given;
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  return self.parent_path().parent_path() / "examples/tooldecode";
}

/// Serves on a free port of the loopback address until the object is destroyed or the process ends.
class ServerProcess {
 public:
  /// \param program  `tooldecode`; std::runtime_error if it does not start to listen
  /// \param arguments  additional ones of `tooldecode serve`
  explicit ServerProcess(const std::filesystem::path& program,
                         const std::vector<std::string>& arguments = {}) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const std::string path = program.string();
    std::vector<const char*> words{path.c_str(), "serve", "--port", "0"};
    for (const std::string& argument : arguments) words.push_back(argument.c_str());
    words.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      dup2(ends[1], STDOUT_FILENO);
      execv(path.c_str(), const_cast<char* const*>(words.data()));
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
    if (process_ < 0 || !read_address()) {
      end();
      throw std::runtime_error(path + ": does not serve; --server names another program");
    }
  }
  ServerProcess(const ServerProcess&)            = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() { end(); }

  /// `http://HOST:PORT`
  [[nodiscard]] const std::string& url() const noexcept { return url_; }

 private:
  // The server's first line ends with it.
  bool read_address() {
    std::string line;
    for (char c = 0; c != '\n';) {
      pollfd ready{output_, POLLIN, 0};
      if (poll(&ready, 1, 30'000) <= 0 || read(output_, &c, 1) != 1) return false;
      if (c != '\n') line += c;
    }
    const std::size_t begin = line.find("http://");
    if (begin != line.npos) url_ = line.substr(begin);
    return !url_.empty();
  }

  // Asks it to end, and kills it after a few seconds.
  void end() {
    if (process_ > 0) {
      kill(process_, SIGTERM);
      for (int waits = 0; waitpid(process_, nullptr, WNOHANG) == 0; ++waits) {
        if (waits == 500) kill(process_, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    close(output_);
  }

  pid_t process_ = -1;
  int output_    = -1;
  std::string url_;
};

}  // namespace tool_latency
