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
                const RetryOptions& options = {})
      : engines_(engines.begin(), engines.end()),
        session_(std::move(session)),
        options_(options),
        order_(engines_.size()) {
    if (engines_.empty()) {
      throw tooldecode::Error(tooldecode::Errc::invalid_option, "engines", "must be one or more");
    }
    std::vector<std::uint64_t> weights;
    for (const Engine& engine : engines_) weights.push_back(weight(engine.client.url(), session_));
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  }

  [[nodiscard]] const std::string& session() const noexcept { return session_; }

  /// A chat completion.
  [[nodiscard]] ChatReply complete(const Json& request, const std::stop_token& stop) {
    return ask([&](const ChatClient& client,
                   std::size_t) { return client.complete(request, stop, session_); },
               stop);
  }

  /// The same as a stream, whose response has the id that the request has, or one that begins so.
  [[nodiscard]] ChatReply follow(const Json& request, const StreamListener& listener,
                                 const std::stop_token& stop) {
    const std::string& name = request.at("response_id").get_ref<const std::string&>();
    const Under under(*this, name);
    return ask(
        [&](const ChatClient& client, std::size_t attempt) {
          Json body = request;
          // One that broke off may still be under way there.
          if (attempt > 0) body["response_id"] = name + ".r" + std::to_string(attempt);
          StreamListener own = listener;
          own.on_id          = [&](const std::string& id) {
            begin_response(client, id, stop);
            if (listener.on_id) listener.on_id(id);
          };
          return client.follow(std::move(body), own, stop, session_);
        },
        stop);
  }

  /// Tells of an output for the response of a request's name; false where that ended first.
  bool cache_output(const std::string& name, const tooldecode::ToolCall& call,
                    const std::string& output, double keep_alive, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (response_.name != name) return false;
    const std::size_t index = response_.outputs.size();
    response_.outputs.push_back({call, output, keep_alive});
    changed_.wait(lock, stop, [&] { return response_.name != name || response_.client; });
    if (response_.name != name || !response_.client) return false;
    const ChatClient& client         = *response_.client;
    const std::string id             = response_.id;
    response_.outputs[index].is_told = true;
    lock.unlock();
    tell(client, id, call, output, keep_alive, stop);
    return true;
  }

  [[nodiscard]] ClusterCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

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
    Under(EngineCluster& in, std::string name) : cluster(in) { set({.name = std::move(name)}); }
    Under(const Under&)            = delete;
    Under& operator=(const Under&) = delete;
    ~Under() { set({}); }
    void set(Response response) const {
      const std::lock_guard lock(cluster.mutex_);
      cluster.response_ = std::move(response);
      cluster.changed_.notify_all();
    }
    EngineCluster& cluster;
  };

  // FNV-1a, finished as SplitMix64 is, which spreads what is alike: the same on every machine.
  static std::uint64_t weight(std::string_view url, std::string_view session) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    const auto add     = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
    for (const char c : url) add(static_cast<unsigned char>(c));
    add(0);
    for (const char c : session) add(static_cast<unsigned char>(c));
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
  }

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
  std::size_t choose(const std::stop_token& stop) {
    for (;;) {
      const auto now = Clock::now();
      auto soonest   = Clock::time_point::max();
      for (const std::size_t number : order_) {
        if (engines_[number].until <= now || stop.stop_requested()) return number;
        soonest = std::min(soonest, engines_[number].until);
      }
      std::mutex alone;
      std::unique_lock lock(alone);
      std::condition_variable_any never;
      never.wait_until(lock, stop, soonest, [] { return false; });
    }
  }

  void leave_alone(Engine& engine, const EngineError& error) {
    double seconds = options_.backoff;
    for (std::size_t i = 0; i < engine.failures && seconds < options_.max_backoff; ++i) {
      seconds *= 2;
    }
    ++engine.failures;
    seconds      = std::min(std::max(seconds, error.retry_after()), options_.max_backoff);
    engine.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
    const std::lock_guard lock(mutex_);
    response_.client = nullptr;
  }

  // An engine has begun to answer. What another one has been told of it must know, too.
  void begin_response(const ChatClient& client, const std::string& id,
                      const std::stop_token& stop) {
    std::vector<Output> again;
    {
      const std::lock_guard lock(mutex_);
      response_.client = &client;
      response_.id     = id;
      for (const Output& output : response_.outputs) {
        if (output.is_told) again.push_back(output);  // of the others somebody else tells
      }
      changed_.notify_all();
    }
    for (const Output& output : again) {
      try {
        tell(client, id, output.call, output.text, output.keep_alive, stop);
        count([](ClusterCounts& counts) { ++counts.retold; });
      } catch (const EngineError& error) {  // the engine asks for what it has not been told
        count([&](ClusterCounts& counts) {
          if (counts.first_failure.empty()) counts.first_failure = error.what();
        });
      }
    }
  }

  // An engine that has no such endpoint is not asked again: then the client alone speculates.
  void tell(const ChatClient& client, const std::string& id, const tooldecode::ToolCall& call,
            const std::string& output, double keep_alive, const std::stop_token& stop) {
    const auto engine = std::find_if(engines_.begin(), engines_.end(),
                                     [&](const Engine& known) { return &known.client == &client; });
    {
      const std::lock_guard lock(mutex_);
      if (!engine->has_cache) throw EngineError(client.url() + ": has no tool cache", 404);
    }
    try {
      client.cache_output(id, call, output, keep_alive, stop, session_);
    } catch (const EngineError& error) {
      if (error.status() == 404 || error.status() == 405 || error.status() == 501) {
        const std::lock_guard lock(mutex_);
        engine->has_cache = false;
      }
      throw;
    }
  }

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
