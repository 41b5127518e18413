/// \file
/// ConnectionServer: HTTP connections of which only whole requests get a thread.
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

/// What connections may ask for.
struct ConnectionLimits {
  RequestLimits request;
  std::size_t connections = 256;                ///< at once, those between two requests included
  std::chrono::milliseconds read{10'000};       ///< from a request's first byte to its last
  std::chrono::milliseconds write{10'000};      ///< until the client takes more
  std::chrono::milliseconds keep_alive{5'000};  ///< between two requests
};

/// One client's socket, closed at the end of its life.
///
/// \par Threads     of the server's loop while it waits, of a worker while it answers
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;
  /// What is waited for.
  enum class Phase {
    idle,      ///< a request's first byte
    reading,   ///< the rest of a request
    lingering  ///< that the client has read the last answer
  };

  /// \param client    the address that is counted against a client
  /// \param patience  asked how long a write may wait for the client
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

  /// Reads what is there.
  void receive();
  /// Whether nothing more will come from the client.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  /// Gives the request what was read ahead; of a body only where it is wanted.
  void advance(const std::function<bool(const RequestReader&)>& wants_body);
  /// Sends what fits, without waiting.
  void send_now(std::string_view text) const;
  /// Makes the request one that `read` reads.
  void begin_answer();
  /// Waits for the next request.
  void begin_request();
  /// Ends what is written, and reads for a moment what the client still sends, or it would not get
  /// to read the answer.
  void linger();

  /// Serves no request after this one.
  void close_after_reply() noexcept { closing_ = true; }
  [[nodiscard]] bool is_closing() const noexcept { return closing_; }
  /// Whether the request came when none was to come any more.
  [[nodiscard]] bool is_late() const noexcept { return late_; }
  void set_late() noexcept { late_ = closing_ = true; }
  /// Whether the client is still there; one that sends ahead is.
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
  std::string ahead_;      // read, and not the request's yet
  std::string input_;      // of the library, which answers
  std::size_t begin_ = 0;  // of what it has not read
  std::size_t left_  = 0;  // bytes that are read while it lingers
  Phase phase_       = Phase::idle;
  Clock::time_point since_, deadline_;
  bool has_head_ = false;  // that was looked at
  bool ended_    = false;
  bool closing_  = false;
  bool late_     = false;
};

/// What a ConnectionServer asks; from any thread.
struct ConnectionHandlers {
  /// Whether the body of this request is wanted; where it is not, the request is answered without.
  std::function<bool(const RequestReader&)> wants_body;
  /// The body, JSON, that says why a request was not read.
  std::function<std::string(int status, const char* problem)> refuse;
  /// Whether clients that do not read keep others waiting.
  std::function<bool()> is_busy;
};

/// An HTTP server whose handlers can ask after the connection that they serve.
///
/// One thread reads the requests of all connections; a worker gets a request when it is whole, so
/// that clients that are slow to ask, or do not ask, keep nobody waiting. Where there are too many
/// connections, the one that has waited longest is closed, first of all of the client that has the
/// most; an eighth of the connections is kept for other clients than that one.
class ConnectionServer : public httplib::Server {
 public:
  ConnectionServer(const ConnectionLimits& limits, ConnectionHandlers handlers);
  ~ConnectionServer() override;

  /// Binds to a port, or to any where it is 0; the port, or nothing where that cannot be.
  [[nodiscard]] std::optional<int> bind(const std::string& host, int port);
  /// Serves until nothing is left to answer after `drain`.
  void serve();
  /// Takes no connections any more, and no requests but those that are under way: from any thread.
  void drain();
  /// Waits no longer for any client: from any thread.
  void stop_waiting();
  /// The connection that this thread serves.
  [[nodiscard]] static Connection& connection() noexcept { return *current; }

 private:
  using Clock   = Connection::Clock;
  using Waiting = std::vector<std::shared_ptr<Connection>>;
  // Of a connection that waits.
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
  int wake_[2]                      = {-1, -1};  // a pipe
  std::atomic<bool> asked_to_drain_ = false, impatient_ = false;

  // Of the loop alone:
  bool draining_       = false;
  std::size_t running_ = 0;  // connections that workers have
  Waiting waiting_;
  std::map<std::string, std::size_t> clients_;  // connections of each
  httplib::TaskQueue* workers_ = nullptr;

  std::mutex mutex_;
  Waiting returned_;  // by workers
};

}  // namespace program
