/// \file
/// HTTP connections that know whether their client is still there, and end where a request is too
/// slow or too large.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include <httplib.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace program {

/// What a connection may ask for.
struct ConnectionLimits {
  std::size_t request_bytes = std::size_t{1} << 20;  ///< of one request, its headers included
  std::chrono::milliseconds read{10'000};            ///< from a request's first byte to its last
  std::chrono::milliseconds write{10'000};           ///< until the client takes more
  std::chrono::milliseconds keep_alive{5'000};       ///< between two requests
};

/// One client's socket, closed at the end of its life.
class Connection final : public httplib::Stream {
 public:
  /// Why nothing more could be read.
  enum class Trouble { none, slow, large };

  Connection(socket_t socket, const ConnectionLimits& limits);
  Connection(const Connection&)            = delete;
  Connection& operator=(const Connection&) = delete;
  /// What the client still sends is read for a moment, or it would not get to read the answer.
  ~Connection() override;

  /// Waits for the next request; false where there will be none.
  template <class Stopped>
  [[nodiscard]] bool wait_for_request(Stopped stopped) {
    const auto deadline = Clock::now() + limits_.keep_alive;
    while (begin_ == end_) {
      if (closing_ || stopped() || Clock::now() >= deadline) return false;
      if (wait_for(POLLIN, std::chrono::milliseconds(100))) break;
    }
    if (closing_) return false;
    trouble_  = Trouble::none;
    count_    = 0;
    deadline_ = Clock::now() + limits_.read;
    return true;
  }
  /// Serves no request after this one.
  void close_after_reply() noexcept { closing_ = true; }
  [[nodiscard]] Trouble trouble() const noexcept { return trouble_; }
  /// Whether the client is still there; one that sends ahead is.
  [[nodiscard]] bool is_open() const;

  [[nodiscard]] bool is_readable() const override { return begin_ < end_; }
  [[nodiscard]] bool is_writable() const override { return is_open(); }
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  template <class Duration>
  [[nodiscard]] bool wait_for(short events, Duration time) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    pollfd entry{.fd = socket_, .events = events, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(std::max<long>(0, static_cast<long>(left)))) > 0;
  }
  [[nodiscard]] bool fill();

  socket_t socket_;
  ConnectionLimits limits_;
  std::array<char, 16384> buffer_{};
  std::size_t begin_ = 0, end_ = 0;  // of the buffer, what is not read yet
  std::size_t count_ = 0;            // bytes of this request
  Clock::time_point deadline_{};
  Trouble trouble_ = Trouble::none;
  bool closing_    = false;
};

/// An HTTP server whose handlers can ask after the connection that they serve.
class ConnectionServer : public httplib::Server {
 public:
  explicit ConnectionServer(const ConnectionLimits& limits);

  /// Binds to a port, or to any where it is 0; the port, or nothing where that cannot be.
  [[nodiscard]] std::optional<int> bind(const std::string& host, int port);
  /// The connection that this thread serves.
  [[nodiscard]] static Connection& connection() noexcept { return *current; }

 private:
  bool process_and_close_socket(socket_t socket) override;

  static inline thread_local Connection* current = nullptr;
  ConnectionLimits limits_;
  socket_t listening_ = INVALID_SOCKET;
};

}  // namespace program
