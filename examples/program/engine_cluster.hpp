/// \file
/// EngineCluster: several engines of one model, as one that does not go away.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
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

/// How often a request is asked again, and how soon.
struct RetryOptions {
  std::size_t retries = 6;    ///< of one request, on whichever engine
  double backoff      = 0.1;  ///< seconds that an engine is left alone; twice that each time again
  double max_backoff  = 5;
};

/// Sends the requests of one session to one engine as long as it answers, so that the engine finds
/// them in its prefix cache; which one depends on the session's name and the engines' addresses
/// alone, and where engines come and go only sessions of those move (rendezvous hashing). An engine
/// that fails, or is too slow, is left alone for a while; what was asked of it is asked anew of the
/// next. Outputs go to the engine that answers their response, under the id that it gives: they
/// wait for that, and go along where the request moves.
///
/// \par Complexity  O(engines log engines) once; a request O(engines) beside its answer
/// \par Threads     one request at a time; cache_output and counts meanwhile from any thread
/// \par Errors      the last EngineError, where it cannot pass or retries are used up
class EngineCluster {
 public:
  /// \param engines  at least one
  EngineCluster(std::vector<ChatClient> engines, std::string session,
                const RetryOptions& options = {});

  [[nodiscard]] const std::string& session() const noexcept { return session_; }

  /// A chat completion.
  [[nodiscard]] ChatReply complete(const Json& request, const std::stop_token& stop);

  /// The same as a stream, whose response has the id that the request has, or one that begins so.
  [[nodiscard]] ChatReply follow(const Json& request, const StreamListener& listener,
                                 const std::stop_token& stop);

  /// Tells of an output for the response of a request's name; false where that ended first.
  bool cache_output(const std::string& name, const tooldecode::ToolCall& call,
                    const std::string& output, double keep_alive, const std::stop_token& stop);

  [[nodiscard]] ClusterCounts counts() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Engine {
    Engine(ChatClient of) : client(std::move(of)) {}
    ChatClient client;
    std::size_t failures = 0;   // one after the other
    Clock::time_point until{};  // when it is asked again
    bool has_cache = true;      // as far as is known
  };
  struct Output {
    tooldecode::ToolCall call;
    std::string text;
    double keep_alive;
    bool is_told = false;  // an engine has been, or is being, told of it
  };
  // The response that is under way.
  struct Response {
    std::string name{};  // the request's; empty where none is
    std::string id{};    // the engine's
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

  // FNV-1a, finished as SplitMix64 is, which spreads what is alike: the same on every machine.
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

  // The first engine of the session that may be asked; waits where none may.
  std::size_t choose(const std::stop_token& stop);

  void leave_alone(Engine& engine, const EngineError& error);

  // An engine has begun to answer. What another one has been told of it must know, too.
  void begin_response(const ChatClient& client, const std::string& id, const std::stop_token& stop);

  // An engine that has no such endpoint is not asked again: then the client alone speculates.
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
  mutable std::mutex mutex_;        // guards what follows, and what is known of caches
  std::condition_variable_any changed_;
  Response response_;
  ClusterCounts counts_;
};

}  // namespace program
