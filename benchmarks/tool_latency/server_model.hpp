/// \file
/// ServerModel: a `tooldecode serve` as a client's main model, with or without its tool cache.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/research/performance_model.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include "simulation.hpp"
#include <program/chat_client.hpp>

namespace tool_latency {

using program::Json;
using tooldecode::Seconds;
using SteadyClock = std::chrono::steady_clock;

/// Sleeps; false if the stop came first.
inline bool sleep_for(Seconds time, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  const auto end = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(time);
  never.wait_until(lock, stop, end, [] { return false; });
  return !stop.stop_requested();
}

/// A client of the server; failures throw std::runtime_error.
class Endpoint {
 public:
  /// \param url   `http://HOST:PORT`
  /// \param stop  cancels all waiting
  Endpoint(const std::string& url, const std::string& model, std::stop_token stop)
      : client(url + "/v1", model, ""), stop_(std::move(stop)) {}

  program::ChatClient client;

  [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }
  [[nodiscard]] std::string new_response() const {
    return "benchmark-" + std::to_string(began_) + '-' + std::to_string(++responses_);
  }

 private:
  std::stop_token stop_;
  SteadyClock::rep began_ = std::chrono::system_clock::now().time_since_epoch().count();
  mutable std::atomic<std::size_t> responses_ = 0;
};

/// Requests replies from a server. If the engine speculates, follows a response in which the server
/// continues after calls whose results it has received.
///
/// \par Threads     one turn at a time; outlives the speculator that has its models
class ServerModel {
 public:
  /// A call after which the engine continued, and when the client had the call and its result.
  struct Answered {
    SteadyClock::time_point call_at, result_at;
    std::string text{};
    tooldecode::ToolCall call{};
    std::string output{};
  };

  /// \param max_calls  the calls of a response that are followed; no one reads it after the result
  ///         of the last
  ServerModel(const Endpoint& endpoint, Policy policy,
              std::size_t max_calls = std::numeric_limits<std::size_t>::max())
      : endpoint_(&endpoint), policy_(policy), max_calls_(max_calls) {}

  /// The main model and the submission of results, without speculators. A request is the context.
  [[nodiscard]] tooldecode::ClientModels<Json> models() {
    tooldecode::ClientModels<Json> models;
    if (policy_ == Policy::engine) {
      models.main = [this](const Json& request, std::stop_token stop,
                           const tooldecode::EngineCallbacks<Json>& callbacks) {
        return follow(request, stop, callbacks);
      };
      models.submit = [this](const Json& request, const tooldecode::ToolCall& call,
                             const tooldecode::ToolResult& result, std::stop_token stop) {
        constexpr double keep_alive = 60;
        endpoint_->client.cache_output(request.at("response_id").string(), call, result.output,
                                       keep_alive, std::move(stop));
        return true;
      };
    } else {
      models.main = [this](const Json& request, std::stop_token stop) {
        last_ = endpoint_->client.complete(request, std::move(stop));
        return tooldecode::Reply{last_.text, last_.calls};
      };
    }
    return models;
  }

  /// A request as this policy sends it.
  [[nodiscard]] Json prepared(Json request) const {
    if (policy_ == Policy::engine) {
      request["response_id"] = endpoint_->new_response();
      request["tool_wait"]   = 30;
    }
    return request;
  }

  [[nodiscard]] const program::ChatReply& last() const noexcept { return last_; }
  /// The calls of the last followed response, except those of the reply.
  [[nodiscard]] const std::vector<Answered>& answered() const noexcept { return answered_; }

 private:
  tooldecode::Reply follow(const Json& request, const std::stop_token& stop,
                           const tooldecode::EngineCallbacks<Json>& callbacks) {
    answered_.clear();
    last_ = {};
    std::optional<SteadyClock::time_point> asked;
    std::stop_source enough;
    const std::stop_callback forward(stop, [&] { enough.request_stop(); });
    const program::StreamListener listener{
        .on_cached =
            [&](const Json& messages, const std::vector<tooldecode::ToolCall>& calls) {
              const auto now   = SteadyClock::now();
              const Json& said = messages.at(messages.size() - 2).at("content");
              answered_.push_back({asked.value_or(now), now,
                                   said.is_string() ? said.get<std::string>() : "", calls.at(0),
                                   messages.back().at("content").get<std::string>()});
              asked.reset();
              Json next = request;
              for (const Json& message : messages) next["messages"].push_back(message);
              callbacks.on_continue(std::move(next), calls);
              if (answered_.size() == max_calls_) enough.request_stop();
            },
        .on_pending =
            [&](const std::vector<tooldecode::ToolCall>& calls) {
              asked = SteadyClock::now();
              return callbacks.on_wait(calls);
            }};
    try {
      last_ = endpoint_->client.follow(request, listener, enough.get_token());
    } catch (const program::EngineError&) {
      if (stop.stop_requested() || answered_.size() < max_calls_) throw;
    }
    return {last_.text, last_.calls};
  }

  const Endpoint* endpoint_;
  Policy policy_;
  std::size_t max_calls_;
  program::ChatReply last_;
  std::vector<Answered> answered_;
};

}  // namespace tool_latency
