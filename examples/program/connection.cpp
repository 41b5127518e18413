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
#include <program/connection.hpp>

namespace program {

Connection::Connection(socket_t socket, const ConnectionLimits& limits)
    : socket_(socket), limits_(limits) {
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::~Connection() {
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

bool Connection::is_open() const {
  char byte           = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (begin_ == end_ && !fill()) return -1;
  const std::size_t count = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, std::size_t size) {
  if (!wait_for(POLLOUT, limits_.write)) return -1;
  const ssize_t count = ::send(socket_, from, size, MSG_NOSIGNAL);
  return count > 0 || size == 0 ? count : -1;
}

bool Connection::fill() {
  if (count_ >= limits_.request_bytes) {
    trouble_ = Trouble::large;
  } else if (!wait_for(POLLIN, deadline_ - Clock::now())) {
    trouble_ = Trouble::slow;
  } else if (const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), 0); count > 0) {
    begin_ = 0;
    end_   = static_cast<std::size_t>(count);
    count_ += end_;
    return true;
  }
  closing_ = true;
  return false;
}

ConnectionServer::ConnectionServer(const ConnectionLimits& limits) : limits_(limits) {
  set_socket_options([this](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    listening_ = socket;
  });
}

std::optional<int> ConnectionServer::bind(const std::string& host, int port) {
  if (port == 0) {
    port = bind_to_any_port(host);
    if (port <= 0) return std::nullopt;
  } else if (!bind_to_port(host, port)) {
    return std::nullopt;
  }
  ::listen(listening_, SOMAXCONN);  // the library's own queue is too short for a burst of clients
  return port;
}

bool ConnectionServer::process_and_close_socket(socket_t socket) {
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

}  // namespace program
