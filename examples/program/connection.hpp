/// \file
/// ConnectionServer: an HTTP server that gives only complete requests to worker threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <httplib.h>
#include <program/http_framing.hpp>

namespace program {

struct ConnectionLimits {
  RequestLimits request;
  std::size_t connections = 256;                ///< at the same time, idle ones included
  std::chrono::milliseconds read{10'000};       ///< from a request's first byte to its last
  std::chrono::milliseconds write{10'000};      ///< until the client accepts more
  std::chrono::milliseconds answer{600'000};    ///< from a whole request to the end of its answer
  std::chrono::milliseconds keep_alive{5'000};  ///< between two requests
};

/// One client's socket; the destructor closes it.
///
/// \par Threads     used by the server's loop while it waits, by a worker while it answers
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Phase {
    idle,      ///< the first byte of a request
    reading,   ///< the rest of a request
    lingering  ///< the client to read the last answer
  };

  /// \param client    the address that connections are counted by
  /// \param patience  returns how long a write may wait for the client
  Connection(socket_t socket, std::string client, const ConnectionLimits& limits,
             std::function<std::chrono::milliseconds()> patience);
  Connection(const Connection&)            = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  [[nodiscard]] const std::string& client() const noexcept { return client_; }
  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] Clock::time_point since() const noexcept { return since_; }
  [[nodiscard]] Clock::time_point deadline() const noexcept { return deadline_; }
  [[nodiscard]] const RequestReader& request() const noexcept { return request_; }

  void receive();
  /// Whether the client will send nothing more.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  /// Passes bytes that were read ahead to the request; of a body only if it is wanted.
  void advance(const std::function<bool(const RequestReader&)>& wants_body);
  void send_now(std::string_view text) const;
  /// Makes `read` return the request.
  void begin_answer();
  void begin_request();
  /// Ends the output and reads for a moment what the client still sends; otherwise the client might
  /// not get to read the answer.
  void linger();

  /// Closes the connection after this request.
  void close_after_reply() noexcept { closing_ = true; }
  [[nodiscard]] bool is_closing() const noexcept { return closing_; }
  /// Whether the request arrived after the last accepted one.
  [[nodiscard]] bool is_late() const noexcept { return late_; }
  void set_late() noexcept { late_ = closing_ = true; }
  /// Whether the client is still connected, perhaps with more requests.
  [[nodiscard]] bool is_open() const;

  [[nodiscard]] bool is_readable() const override { return begin_ < input_.size(); }
  [[nodiscard]] bool is_writable() const override { return is_open(); }
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  void wait_in(Phase phase, std::chrono::milliseconds time);

  socket_t socket_;
  std::string client_;
  const ConnectionLimits* limits_;
  std::function<std::chrono::milliseconds()> patience_;
  RequestReader request_;
  std::string ahead_;
  std::string input_;      // for the HTTP library, which answers
  std::size_t begin_ = 0;  // start of the unread input
  std::size_t left_  = 0;  // bytes still read while it lingers
  Phase phase_       = Phase::idle;
  Clock::time_point since_, deadline_, answer_end_;
  bool has_head_ = false;
  bool ended_    = false;
  bool closing_  = false;
  bool late_     = false;
};

/// Callbacks of a ConnectionServer; called from any thread.
struct ConnectionHandlers {
  /// Whether the body of this request is wanted; otherwise the request is answered without it.
  std::function<bool(const RequestReader&)> wants_body;
  /// The JSON body that says why a request was refused.
  std::function<std::string(int status, const char* problem)> refuse;
  /// Whether clients that do not read keep others waiting.
  std::function<bool()> is_busy;
};

/// An HTTP server whose handlers can access the connection that they serve.
///
/// One thread reads the requests of all connections. A worker gets a request when it is complete,
/// so slow or silent clients do not block others. If there are too many connections, the one that
/// has waited longest of the client with the most connections is closed. An eighth of the
/// connections is reserved for other clients than that one.
class ConnectionServer : public httplib::Server {
 public:
  ConnectionServer(const ConnectionLimits& limits, ConnectionHandlers handlers);
  ~ConnectionServer() override;

  /// Binds to a port, or to any port for 0. Returns the port, or nothing if that fails.
  [[nodiscard]] std::optional<int> bind(const std::string& host, int port);
  /// Serves until `drain` was called and everything is answered.
  void serve();
  /// Accepts no more connections and no new requests. Call it from any thread.
  void drain();
  /// Stops waiting for clients. Call it from any thread.
  void stop_waiting();
  /// The connection that this thread serves.
  [[nodiscard]] static Connection& connection() noexcept { return *current; }

 private:
  using Clock   = Connection::Clock;
  using Waiting = std::vector<std::shared_ptr<Connection>>;
  enum class Fate { wait, answer, close };

  void wake() const;
  [[nodiscard]] bool takes_connections() const;
  void poll_once();
  void accept_all();
  void accept_one(socket_t socket, const std::string& client);
  [[nodiscard]] Waiting::iterator find_oldest(const std::string* client);
  void close(Waiting::iterator connection);
  void forget(const Connection& connection);
  void take_back();
  void settle();
  [[nodiscard]] Fate settle(Connection& connection);
  void refuse(Connection& connection, int status, const char* problem);
  void answer(const std::shared_ptr<Connection>& connection);
  [[nodiscard]] std::chrono::milliseconds patience() const;

  static inline thread_local Connection* current = nullptr;
  ConnectionLimits limits_;
  ConnectionHandlers handlers_;
  socket_t listening_               = INVALID_SOCKET;
  int wake_[2]                      = {-1, -1};
  std::atomic<bool> asked_to_drain_ = false, impatient_ = false;

  // Used only by the loop:
  bool draining_       = false;
  std::size_t running_ = 0;  // connections held by workers
  Waiting waiting_;
  std::map<std::string, std::size_t> clients_;
  httplib::TaskQueue* workers_ = nullptr;

  std::mutex mutex_;
  Waiting returned_;  // returned by workers
};

}  // namespace program
