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

  Connection(socket_t socket, const ConnectionLimits& limits) : socket_(socket), limits_(limits) {
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  Connection(const Connection&)            = delete;
  Connection& operator=(const Connection&) = delete;
  /// What the client still sends is read for a moment, or it would not get to read the answer.
  ~Connection() override {
    ::shutdown(socket_, SHUT_WR);
    std::size_t left    = 4 * limits_.request_bytes;
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    while (left > 0 && Clock::now() < deadline && wait_for(POLLIN, deadline - Clock::now())) {
      const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (count <= 0) break;
      left -= std::min(left, static_cast<std::size_t>(count));
    }
    ::close(socket_);
  }

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
  [[nodiscard]] bool is_open() const {
    char byte           = 0;
    const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  [[nodiscard]] bool is_readable() const override { return begin_ < end_; }
  [[nodiscard]] bool is_writable() const override { return is_open(); }
  ssize_t read(char* to, std::size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const std::size_t count = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, count);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    if (!wait_for(POLLOUT, limits_.write)) return -1;
    const ssize_t count = ::send(socket_, from, size, MSG_NOSIGNAL);
    return count > 0 || size == 0 ? count : -1;
  }
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
  [[nodiscard]] bool fill() {
    if (count_ >= limits_.request_bytes) {
      trouble_ = Trouble::large;
    } else if (!wait_for(POLLIN, deadline_ - Clock::now())) {
      trouble_ = Trouble::slow;
    } else if (const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
               count > 0) {
      begin_ = 0;
      end_   = static_cast<std::size_t>(count);
      count_ += end_;
      return true;
    }
    closing_ = true;
    return false;
  }

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
  explicit ConnectionServer(const ConnectionLimits& limits) : limits_(limits) {
    set_socket_options([this](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      listening_ = socket;
    });
  }

  /// Binds to a port, or to any where it is 0; the port, or nothing where that cannot be.
  [[nodiscard]] std::optional<int> bind(const std::string& host, int port) {
    if (port == 0) {
      port = bind_to_any_port(host);
      if (port <= 0) return std::nullopt;
    } else if (!bind_to_port(host, port)) {
      return std::nullopt;
    }
    ::listen(listening_, SOMAXCONN);  // the library's own queue is too short for a burst of clients
    return port;
  }
  /// The connection that this thread serves.
  [[nodiscard]] static Connection& connection() noexcept { return *current; }

 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, limits_);
    current     = &connection;
    bool served = true, closed = false;
    while (served && !closed &&
           connection.wait_for_request([this] { return svr_sock_ == INVALID_SOCKET; })) {
      served = process_request(connection, false, closed,
                               [](httplib::Request& request) { request.ranges.clear(); });
    }
    current = nullptr;
    return served;
  }

  static inline thread_local Connection* current = nullptr;
  ConnectionLimits limits_;
  socket_t listening_ = INVALID_SOCKET;
};

}  // namespace program
