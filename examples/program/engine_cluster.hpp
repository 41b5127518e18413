/// \file
/// EngineCluster: several engines of one model, used as one reliable engine.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/chat_client.hpp>
#include <program/cluster_counts.hpp>
#include <program/json.hpp>

namespace program {

struct RetryOptions {
  std::size_t retries    = 6;    ///< per request, on any engine
  double backoff         = 0.1;  ///< seconds that a failed engine is avoided; doubled each time
  double max_backoff     = 5;
  double max_retry_after = 300;  ///< most seconds for which an engine may ask to be avoided
};

/// Sends the requests of one session to one engine while it answers, so that the engine finds them
/// in its prefix cache. The choice depends only on the session's name and the engines' addresses;
/// if an engine is added or removed, only its sessions move (rendezvous hashing). An engine that
/// fails or is too slow is avoided for a while, and its request is retried on the next one. Outputs
/// go to the engine that answers their response, under the id that it assigns: they wait for the
/// id, and move with the request.
///
/// \par Complexity  O(engines log engines) once; a request O(engines) besides its answer
/// \par Threads     one request at a time; cache_output and counts meanwhile from any thread
/// \par Errors      the last EngineError, if it is permanent or retries are used up
class EngineCluster {
 public:
  /// \param engines  at least one
  EngineCluster(std::vector<ChatClient> engines, std::string session,
                const RetryOptions& options = {});

  [[nodiscard]] const std::string& session() const noexcept { return session_; }

  [[nodiscard]] ChatReply complete(const Json& request, const std::stop_token& stop);

  /// As complete, but streamed. The response's id is the request's id, or begins with it.
  [[nodiscard]] ChatReply follow(const Json& request, const StreamListener& listener,
                                 const std::stop_token& stop);

  /// Announces an output for the response of a named request; false if that has ended.
  bool cache_output(const std::string& name, const tooldecode::ToolCall& call,
                    const std::string& output, double keep_alive, const std::stop_token& stop);

  [[nodiscard]] ClusterCounts counts() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Engine {
    Engine(ChatClient of) : client(std::move(of)) {}
    ChatClient client;
    std::size_t failures = 0;
    Clock::time_point until{};  // when it is tried again
    bool has_cache = true;      // as far as known
  };
  struct Output {
    tooldecode::ToolCall call;
    std::string text;
    double keep_alive;
    bool is_told = false;  // announced to an engine, or about to be
  };
  struct Response {
    std::string name{};  // of the request; empty if there is none
    std::string id{};
    const ChatClient* client = nullptr;
    std::vector<Output> outputs{};
  };
  struct Under {
    Under(EngineCluster& in, std::string name);
    Under(const Under&)            = delete;
    Under& operator=(const Under&) = delete;
    ~Under();
    void set(Response response) const;
    EngineCluster& cluster;
  };

  // FNV-1a, finished as in SplitMix64 to spread similar inputs; equal on every machine.
  static std::uint64_t weight(std::string_view url, std::string_view session);

  template <class Once>
  ChatReply ask(Once once, const std::stop_token& stop) {
    count([](ClusterCounts& counts) { ++counts.requests; });
    std::optional<std::size_t> last;
    for (std::size_t attempt = 0;; ++attempt) {
      const std::size_t number = choose(stop);
      Engine& engine           = engines_[number];
      if (last) {
        count([&](ClusterCounts& counts) {
          ++counts.retries;
          if (number != *last) ++counts.moved;
        });
      }
      last = number;
      try {
        ChatReply reply = once(std::as_const(engine.client), attempt);
        engine.failures = 0;
        return reply;
      } catch (const EngineError& error) {
        count([&](ClusterCounts& counts) {
          if (counts.first_failure.empty()) counts.first_failure = error.what();
        });
        if (stop.stop_requested() || !error.may_pass() || attempt >= options_.retries) throw;
        leave_alone(engine, error);
      }
    }
  }

  // The first available engine of the session; waits if there is none.
  std::size_t choose(const std::stop_token& stop);

  void leave_alone(Engine& engine, const EngineError& error);

  // An engine has begun to answer. It also needs the outputs that another engine received.
  void begin_response(const ChatClient& client, const std::string& id, const std::stop_token& stop);

  // An engine without this endpoint is not asked again; then only the client speculates.
  void tell(const ChatClient& client, const std::string& id, const tooldecode::ToolCall& call,
            const std::string& output, double keep_alive, const std::stop_token& stop);

  template <class Count>
  void count(Count add) {
    const std::lock_guard lock(mutex_);
    add(counts_);
  }

  std::vector<Engine> engines_;
  std::string session_;
  RetryOptions options_;
  std::vector<std::size_t> order_;  // of the engines, for this session
  mutable std::mutex mutex_;        // guards the members below and Engine::has_cache
  std::condition_variable_any changed_;
  Response response_;
  ClusterCounts counts_;
};

}  // namespace program
