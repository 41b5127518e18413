#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <httplib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <program/connection.hpp>
#include <program/http_framing.hpp>
#include <program/send_now.hpp>
#include <sys/socket.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace program {

namespace {

using std::chrono::milliseconds;

constexpr int max_unread_bytes = 1 << 16;  // of an answer, in kernel buffers
// After a request of this size its memory is returned; the allocator would keep it for the thread.
constexpr std::size_t large_request = std::size_t{1} << 18;

int left_until(Connection::Clock::time_point time) {
  const auto left = std::chrono::ceil<milliseconds>(time - Connection::Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

bool wait_for(socket_t socket, short events, milliseconds time) {
  pollfd entry{.fd = socket, .events = events, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(std::max<long long>(0, time.count()))) > 0;
}

void set_nonblocking(int file) {
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
  fcntl(file, F_SETFD, FD_CLOEXEC);
}

// Clients that share an address, or an IPv6 network, count as one.
std::string client_of(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  } else if (address.ss_family == AF_INET6) {
    in6_addr six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&six)) std::fill(six.s6_addr + 8, six.s6_addr + 16, 0);
    inet_ntop(AF_INET6, &six, text.data(), text.size());
  }
  return text.data();
}

const char* reason_of(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

std::string refusal(int status, const std::string& body, std::string_view method) {
  return "HTTP/1.1 " + std::to_string(status) + ' ' + reason_of(status) +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + (method == "HEAD" ? std::string() : body);
}

}  // namespace

Connection::Connection(socket_t socket, std::string client, const ConnectionLimits& limits,
                       std::function<milliseconds()> patience)
    : socket_(socket),
      client_(std::move(client)),
      limits_(&limits),
      patience_(std::move(patience)),
      request_(limits.request) {
  set_nonblocking(socket_);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &max_unread_bytes, sizeof max_unread_bytes);
  wait_in(Phase::idle, limits_->keep_alive);
}

Connection::~Connection() {
  ::close(socket_);
}

void Connection::wait_in(Phase phase, milliseconds time) {
  phase_    = phase;
  since_    = Clock::now();
  deadline_ = since_ + time;
}

void Connection::receive() {
  std::array<char, 16384> buffer;
  for (int turn = 0; turn < 16 && !ended_; ++turn) {  // then other connections get their turn
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (count <= 0) {
      ended_ = true;
      return;
    }
    const auto size = static_cast<std::size_t>(count);
    if (phase_ == Phase::lingering) {
      ended_ = size >= left_;
      left_ -= std::min(size, left_);
    } else {
      ahead_.append(buffer.data(), size);
      if (ahead_.size() > limits_->request.head_bytes) return;
    }
  }
}

void Connection::advance(const std::function<bool(const RequestReader&)>& wants_body) {
  if (phase_ == Phase::lingering || ahead_.empty()) return;
  if (phase_ == Phase::idle) wait_in(Phase::reading, limits_->read);
  ahead_.erase(0, request_.push(ahead_));
  if (request_.state() != RequestReader::State::body || has_head_) return;
  has_head_ = true;
  if (!wants_body(request_)) {
    request_.drop_body();
    closing_ = true;
    return;
  }
  if (request_.expects_continue()) send_now("HTTP/1.1 100 Continue\r\n\r\n");
  ahead_.erase(0, request_.push(ahead_));
}

void Connection::send_now(std::string_view text) const {
  static_cast<void>(program::send_now(socket_, text.data(), text.size()));
}

void Connection::begin_answer() {
  input_      = request_.text();
  begin_      = 0;
  answer_end_ = Clock::now() + limits_->answer;
}

void Connection::begin_request() {
  const bool was_large = input_.capacity() >= large_request;
  input_               = {};
  request_             = RequestReader(limits_->request);
  has_head_            = false;
  wait_in(Phase::idle, limits_->keep_alive);
#ifdef __GLIBC__
  if (was_large) malloc_trim(0);
#else
  static_cast<void>(was_large);
#endif
}

void Connection::linger() {
  begin_request();
  ::shutdown(socket_, SHUT_WR);
  ahead_ = {};
  left_  = 4 * (limits_->request.head_bytes + limits_->request.body_bytes);
  wait_in(Phase::lingering, milliseconds(1000));
}

bool Connection::is_open() const {
#ifdef POLLRDHUP
  // Unlike a peek, it also sees an end after bytes that were sent ahead.
  pollfd entry{.fd = socket_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) <= 0;
#else
  char byte           = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
#endif
}

ssize_t Connection::read(char* to, std::size_t size) {
  const std::size_t count = input_.copy(to, size, begin_);
  begin_ += count;
  return count > 0 ? static_cast<ssize_t>(count) : -1;
}

// Waits in slices, because patience may end meanwhile.
ssize_t Connection::write(const char* from, std::size_t size) {
  auto begin = Clock::now();
  for (std::size_t sent = 0; sent < size;) {
    const ssize_t count = program::send_now(socket_, from + sent, size - sent);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
      begin = Clock::now();
      if (begin < answer_end_ || sent == size) continue;
      closing_ = true;  // a client that reads a little at a time would keep its worker
      return -1;
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      return -1;
    } else if (!wait_for(socket_, POLLOUT, milliseconds(100)) &&
               Clock::now() - begin >= patience_()) {
      closing_ = true;
      return -1;
    }
  }
  return static_cast<ssize_t>(size);
}

ConnectionServer::ConnectionServer(const ConnectionLimits& limits, ConnectionHandlers handlers)
    : limits_(limits), handlers_(std::move(handlers)) {
  set_socket_options([this](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    listening_ = socket;
  });
  if (::pipe(wake_) == 0) {
    set_nonblocking(wake_[0]);
    set_nonblocking(wake_[1]);
  }
}

ConnectionServer::~ConnectionServer() {
  ::close(wake_[0]);
  ::close(wake_[1]);
}

std::optional<int> ConnectionServer::bind(const std::string& host, int port) {
  if (port == 0) {
    port = bind_to_any_port(host);
    if (port <= 0) return std::nullopt;
  } else if (!bind_to_port(host, port)) {
    return std::nullopt;
  }
  ::listen(listening_, SOMAXCONN);  // the library's queue is too short for a burst of clients
  set_nonblocking(listening_);
  return port;
}

void ConnectionServer::serve() {
  httplib::ThreadPool workers(limits_.connections);
  workers_ = &workers;
  for (;;) {
    const bool drains = asked_to_drain_ && !draining_;
    if (drains) accept_all();  // clients that have connected by now get an answer
    poll_once();
    if (drains) {  // requests that had arrived by now are still answered
      ::close(std::exchange(listening_, INVALID_SOCKET));
      draining_ = true;
    }
    const bool lingers = std::any_of(waiting_.begin(), waiting_.end(), [](const auto& one) {
      return one->phase() == Connection::Phase::lingering;
    });
    if (draining_ && running_ == 0 && !lingers) break;
  }
  workers.shutdown();
  waiting_.clear();
}

void ConnectionServer::drain() {
  asked_to_drain_ = true;
  wake();
}

void ConnectionServer::stop_waiting() {
  impatient_ = true;
}

void ConnectionServer::wake() const {
  static_cast<void>(!::write(wake_[1], "", 1));  // if the pipe is full, the loop wakes anyway
}

bool ConnectionServer::takes_connections() const {
  return listening_ != INVALID_SOCKET && (running_ < limits_.connections || !waiting_.empty());
}

void ConnectionServer::poll_once() {
  std::vector<pollfd> entries{{.fd = wake_[0], .events = POLLIN, .revents = 0}};
  entries.push_back({.fd = takes_connections() ? listening_ : -1, .events = POLLIN, .revents = 0});
  auto next = Clock::now() + std::chrono::minutes(1);
  for (const auto& one : waiting_) {
    entries.push_back({.fd = one->socket(), .events = POLLIN, .revents = 0});
    next = std::min(next, one->deadline());
  }
  const bool is_pass = asked_to_drain_ && !draining_;
  const int count =
      ::poll(entries.data(), static_cast<nfds_t>(entries.size()), is_pass ? 0 : left_until(next));
  if (count > 0) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (entries[i + 2].revents != 0) waiting_[i]->receive();
    }
    if (entries[0].revents != 0) {
      std::array<char, 256> bytes;
      while (::read(wake_[0], bytes.data(), bytes.size()) > 0) {}
    }
  }
  take_back();
  settle();
  if (count > 0 && entries[1].revents != 0) accept_all();
}

void ConnectionServer::accept_all() {
  constexpr int burst = 64;
  for (int i = 0; i < burst && takes_connections(); ++i) {
    sockaddr_storage address{};
    socklen_t size        = sizeof address;
    const socket_t socket = ::accept(listening_, reinterpret_cast<sockaddr*>(&address), &size);
    if (socket == INVALID_SOCKET) {
      if (errno != EMFILE && errno != ENFILE) return;
      // Out of descriptors: close a waiting connection, or wait until one is free.
      if (!waiting_.empty()) return close(find_oldest(nullptr));
      return std::this_thread::sleep_for(milliseconds(10));
    }
    ignore_closed_end(socket);
    accept_one(socket, client_of(address));
  }
}

void ConnectionServer::accept_one(socket_t socket, const std::string& client) {
  const std::size_t share  = limits_.connections - limits_.connections / 8;
  const auto known         = clients_.find(client);
  const bool is_over_share = known != clients_.end() && known->second >= share;
  if (is_over_share || running_ + waiting_.size() >= limits_.connections) {
    const auto oldest = find_oldest(is_over_share ? &client : nullptr);
    if (oldest == waiting_.end()) {
      const std::string text =
          refusal(503, handlers_.refuse(503, "the server has as many connections as it may"), "");
      static_cast<void>(send_now(socket, text.data(), text.size()));
      ::close(socket);
      return;
    }
    close(oldest);
  }
  ++clients_[client];
  waiting_.push_back(
      std::make_shared<Connection>(socket, client, limits_, [this] { return patience(); }));
}

ConnectionServer::Waiting::iterator ConnectionServer::find_oldest(const std::string* client) {
  auto oldest     = waiting_.end();
  const auto rank = [this](const Connection& one) {
    return std::pair(-static_cast<std::ptrdiff_t>(clients_[one.client()]), one.since());
  };
  for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
    if (client != nullptr && (*one)->client() != *client) continue;
    if (oldest == waiting_.end() || rank(**one) < rank(**oldest)) oldest = one;
  }
  return oldest;
}

void ConnectionServer::close(Waiting::iterator connection) {
  forget(**connection);
  waiting_.erase(connection);
}

void ConnectionServer::forget(const Connection& connection) {
  const auto count = clients_.find(connection.client());
  if (--count->second == 0) clients_.erase(count);
}

void ConnectionServer::take_back() {
  Waiting returned;
  {
    const std::lock_guard lock(mutex_);
    returned.swap(returned_);
  }
  running_ -= returned.size();
  for (auto& one : returned) {
    one->is_closing() ? one->linger() : one->begin_request();
    waiting_.push_back(std::move(one));
  }
}

void ConnectionServer::settle() {
  Waiting all;
  all.swap(waiting_);
  for (auto& one : all) {
    const Fate fate = settle(*one);
    if (fate == Fate::wait) {
      waiting_.push_back(std::move(one));
    } else if (fate == Fate::close) {
      forget(*one);
    } else {
      ++running_;
      workers_->enqueue([this, one] { answer(one); });
    }
  }
}

ConnectionServer::Fate ConnectionServer::settle(Connection& connection) {
  using Phase        = Connection::Phase;
  const bool lingers = connection.phase() == Phase::lingering;
  if (!lingers) connection.advance(handlers_.wants_body);  // may begin a request's own time
  const bool over = Clock::now() >= connection.deadline();
  if (lingers) return over || connection.has_ended() ? Fate::close : Fate::wait;
  const RequestReader& request = connection.request();
  if (request.state() == RequestReader::State::whole) {
    if (draining_) connection.set_late();
    return Fate::answer;
  }
  if (request.state() == RequestReader::State::refused) {
    refuse(connection, request.status(), request.problem());
  } else if (connection.phase() == Phase::idle) {
    return over || connection.has_ended() ? Fate::close : Fate::wait;
  } else if (connection.has_ended()) {
    refuse(connection, 400, "the request ends before it is whole");
  } else if (over) {
    refuse(connection, 408, "the request took too long to arrive");
  }
  return Fate::wait;
}

void ConnectionServer::refuse(Connection& connection, int status, const char* problem) {
  connection.send_now(
      refusal(status, handlers_.refuse(status, problem), connection.request().method()));
  connection.linger();
}

void ConnectionServer::answer(const std::shared_ptr<Connection>& connection) {
  current = connection.get();
  try {
    connection->begin_answer();
    if (!connection->request().keeps_connection() || asked_to_drain_) {
      connection->close_after_reply();
    }
    bool closed = false;
    if (!process_request(*connection, connection->is_closing(), closed,
                         [](httplib::Request& request) { request.ranges.clear(); }) ||
        closed) {
      connection->close_after_reply();
    }
  } catch (...) {  // out of memory: serve the other connections
    connection->close_after_reply();
  }
  current = nullptr;
  {
    const std::lock_guard lock(mutex_);
    returned_.push_back(connection);
  }
  wake();
}

milliseconds ConnectionServer::patience() const {
  constexpr milliseconds when_busy{1000};
  if (impatient_) return milliseconds(0);
  return handlers_.is_busy() ? std::min(limits_.write, when_busy) : limits_.write;
}

}  // namespace program
