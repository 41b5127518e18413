/// \file
/// Agents that ask a `tooldecode serve`, run tools that sleep, and predict calls from a script.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>

#include "simulation.hpp"
#include <httplib.h>
#include <nlohmann/json.hpp>
#include <program/chat_client.hpp>

namespace tool_latency {

using tooldecode::Seconds;
using SteadyClock = std::chrono::steady_clock;

/// Sleeps; false where the stop came first.
inline bool sleep_until(SteadyClock::time_point end, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, end, [] { return false; });
  return !stop.stop_requested();
}

/// The server, as agents ask it; what fails is a std::runtime_error.
class Endpoint {
 public:
  /// \param url   `http://HOST:PORT`
  /// \param stop  ends all that is waited for
  Endpoint(const std::string& url, const std::string& model, std::stop_token stop)
      : client(url + "/v1", model, ""), stop_(std::move(stop)), url_(url) {}

  program::ChatClient client;

  [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }
  /// A name for a response that no other one has.
  [[nodiscard]] std::string new_response() const {
    return "benchmark-" + std::to_string(began_) + '-' + std::to_string(++responses_);
  }

  /// A chat completion as a stream: gives each delta as soon as it comes.
  void stream(nlohmann::ordered_json request,
              const std::function<void(const nlohmann::ordered_json&)>& on_delta) const {
    using Json        = nlohmann::ordered_json;
    request["model"]  = client.model();
    request["stream"] = true;
    httplib::Client http(url_);
    http.set_tcp_nodelay(true);
    const std::stop_callback stopping(stop_, [&http] { http.stop(); });
    std::string held;
    bool is_done = false;
    std::exception_ptr failure;
    httplib::Request post;
    post.method           = "POST";
    post.path             = "/v1/chat/completions";
    post.headers          = {{"Content-Type", "application/json"}};
    post.body             = request.dump();
    post.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
      held.append(data, size);
      try {
        for (std::size_t end; (end = held.find("\n\n")) != held.npos; held.erase(0, end + 2)) {
          const std::string event = held.substr(0, end).substr(std::string_view("data: ").size());
          is_done                 = event == "[DONE]";
          if (is_done) continue;
          const Json choices = Json::parse(event).at("choices");
          if (!choices.empty()) on_delta(choices[0].at("delta"));
        }
        return true;
      } catch (...) {
        failure = std::current_exception();
        return false;
      }
    };
    const auto result = http.send(post);
    if (failure) std::rethrow_exception(failure);
    if (!result) throw std::runtime_error(url_ + ": " + httplib::to_string(result.error()));
    if (!is_done) throw std::runtime_error(url_ + ": not a whole stream: " + held);
  }

 private:
  std::stop_token stop_;
  std::string url_;
  SteadyClock::rep began_ = std::chrono::system_clock::now().time_since_epoch().count();
  mutable std::atomic<std::size_t> responses_ = 0;
};

/// A question that is answered by one call and then, with its result, by text.
struct Question {
  nlohmann::ordered_json messages, tools;
  tooldecode::ToolCall call{};  ///< as the model makes it without speculation, like what follows
  std::string output{};
  std::string text{};
  Seconds natural{};  ///< what the server takes for the call
};

/// What a tool says of a call: words after which the model has no more to do, which ones the call
/// decides.
inline std::string output_of(const tooldecode::ToolCall& call) {
  constexpr std::string_view goodbyes[]{"Thank you, that was all.", "Thanks, that was all.",
                                        "Thank you, that is all.", "Thank you, goodbye."};
  const std::string key = call.canonical_text();
  const auto sum        = std::accumulate(key.begin(), key.end(), std::size_t{0});
  return std::string(goodbyes[sum % std::size(goodbyes)]);
}

/// A call that is not the one that will be made.
inline tooldecode::ToolCall spoilt(tooldecode::ToolCall call, std::size_t how) {
  call.arguments.front() = "no " + std::to_string(how);
  return call;
}

/// What all agents do, and how.
struct Task {
  std::vector<Question> questions{};
  tooldecode::ToolSet tools{};         ///< of all questions, read-only
  Seconds generation{}, prediction{};  ///< G, to which calls are padded, and g
  std::size_t max_tokens = 64;         ///< of an answer
  std::uint64_t seed     = 1;

  [[nodiscard]] nlohmann::ordered_json request(const Question& question) const {
    return {{"messages", question.messages},
            {"tools", question.tools},
            {"temperature", 0},
            {"max_tokens", max_tokens}};
  }
  /// The second request: with the call's result.
  [[nodiscard]] nlohmann::ordered_json request(const Question& question,
                                               const nlohmann::ordered_json& message,
                                               const std::string& output) const {
    nlohmann::ordered_json result = request(question);
    result["messages"].push_back(message);
    result["messages"].push_back({{"role", "tool"},
                                  {"tool_call_id", message.at("tool_calls").at(0).at("id")},
                                  {"content", output}});
    return result;
  }
};

/// What a turn was, from its question to the text that answers it.
struct RealTurn {
  Seconds total{};
  Seconds generation{};  ///< until the client, or the stream, has the call
  Seconds tool{};        ///< from then on until the result is where it is needed
  Seconds guess{};       ///< until the prediction; zero where there was none
  tooldecode::SpeculationCounts counts{};
  bool is_same     = false;  ///< call, result and text are those without speculation
  bool is_resident = false;  ///< the result was in the engine's cache when the call ended

  [[nodiscard]] Seconds rest() const { return total - generation - tool; }
};

/// One agent at one tool latency, with several ways to speculate of which each turn takes one.
///
/// Without speculation and at the client a turn is two requests: for the call, and with its result
/// for the text. In the engine it is one, a stream: the client announces the result of what it
/// predicted, or of the call that the stream tells of, and the engine goes on over it.
class Agent {
 public:
  Agent(const Endpoint& endpoint, const Task& task, std::size_t number, Seconds latency,
        const std::vector<Speculation>& ways, std::size_t turns, tooldecode::SpeculationGate& gate)
      : endpoint_(&endpoint),
        task_(&task),
        number_(number),
        latency_(latency),
        executor_([this](const tooldecode::ToolCall& call,
                         std::stop_token stop) { return run(call, std::move(stop)); },
                  task.tools) {
    for (std::size_t w = 0; w < ways.size(); ++w) add(ways[w], w, turns, gate);
  }

  /// One turn, which begins now.
  RealTurn turn(std::size_t way, std::size_t index) {
    std::promise<void> known;  // broken where the request fails, so that nobody waits for it
    RealTurn result;
    const auto begin = SteadyClock::now();
    {
      const std::lock_guard lock(mutex_);
      live_ = {.begin = begin, .known = known.get_future().share()};
      if (ways_[way].policy == Policy::engine) live_.response = endpoint_->new_response();
    }
    known_                 = &known;
    seen_                  = {};
    const Question& asked  = question(index);
    const auto client_turn = speculators_[way](index, endpoint_->stop());
    result.counts          = client_turn.counts;
    if (ways_[way].policy == Policy::engine) {
      result.generation  = seen_.call_at - begin;
      result.tool        = seen_.result_at - seen_.call_at;
      result.is_resident = !seen_.is_told;
    } else {
      result.generation = client_turn.generation;
      result.tool       = client_turn.tools;
      if (client_turn.reply.calls.size() == 1) {
        seen_.call       = client_turn.reply.calls[0];
        seen_.output     = client_turn.results[0].output;
        const auto reply = endpoint_->client.complete(task_->request(asked, message_, seen_.output),
                                                      endpoint_->stop());
        seen_.text       = reply.text;
      }
    }
    result.total = SteadyClock::now() - begin;
    {
      const std::lock_guard lock(mutex_);
      result.guess = live_.guess;
    }
    result.is_same =
        seen_.call == asked.call && seen_.output == asked.output && seen_.text == asked.text;
    return result;
  }

 private:
  using Json = nlohmann::ordered_json;

  // What the threads of a turn share.
  struct Live {
    SteadyClock::time_point begin{};
    std::shared_future<void> known{};  // the server knows the response
    std::string response{};            // empty where nothing is announced
    Seconds guess{};
    std::set<std::string> begun{}, announced{};  // keys
  };
  // What came of a turn, in the order in which it comes.
  struct Seen {
    SteadyClock::time_point call_at{}, result_at{};
    bool is_told = false;  // of a call that the client must run
    tooldecode::ToolCall call{};
    std::string output{}, text{};
  };

  [[nodiscard]] const Question& question(std::size_t index) const {
    // Agents at the same time ask different ones.
    return task_->questions[(index + 5 * number_) % task_->questions.size()];
  }

  void add(const Speculation& way, std::size_t w, std::size_t turns,
           tooldecode::SpeculationGate& gate) {
    ways_.push_back(way);
    tooldecode::ClientModels<std::size_t> generators;
    if (way.policy == Policy::engine) {
      generators.main = [this](std::size_t index, std::stop_token) { return follow(index); };
    } else {
      generators.main = [this](std::size_t index, std::stop_token stop) {
        return ask(index, std::move(stop));
      };
    }
    for (std::size_t s = 0; way.policy != Policy::none && s < way.speculators; ++s) {
      generators.speculators.push_back(
          [this, s, script = script(turns, way.acceptance, 100 * (10 * number_ + w) + s)](
              std::size_t index, std::stop_token stop) {
            return guess(index, s, script[index], std::move(stop));
          });
    }
    tooldecode::ClientOptions options{.policy = tooldecode::SpeculationPolicy(task_->tools)};
    if (way.is_gated) {
      // All tools are alike here, so that what is learnt of one is true of the others.
      options.expects_gain = [&gate](std::string_view) { return gate.expects_gain("any"); };
      options.observe      = [&gate](std::string_view, const tooldecode::Observation& seen) {
        gate.observe("any", seen);
      };
    }
    speculators_.emplace_back(std::move(generators), executor_, std::move(options));
  }

  // Which turns are predicted right: exactly that share of them.
  [[nodiscard]] std::vector<bool> script(std::size_t turns, double acceptance,
                                         std::size_t stream) const {
    std::vector<std::size_t> order(turns);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto draw = [&](std::size_t i) {
      return tooldecode::core::uniform(task_->seed, 1000 * stream + i, 0);
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return draw(a) < draw(b); });
    const auto right = static_cast<std::size_t>(acceptance * static_cast<double>(turns) + 0.5);
    std::vector<bool> result(turns);
    for (std::size_t i = 0; i < right; ++i) result[order[i]] = true;
    return result;
  }

  tooldecode::Reply guess(std::size_t index, std::size_t speculator, bool is_right,
                          std::stop_token stop) {
    if (!sleep_until(from_begin(task_->prediction), std::move(stop))) return {};
    {
      const std::lock_guard lock(mutex_);
      live_.guess = SteadyClock::now() - live_.begin;
    }
    const auto& call = question(index).call;
    return {"", {is_right ? call : spoilt(call, speculator)}};
  }

  [[nodiscard]] SteadyClock::time_point from_begin(Seconds time) {
    const std::lock_guard lock(mutex_);
    return live_.begin + std::chrono::duration_cast<SteadyClock::duration>(time);
  }

  // Stands for what a larger model would take longer.
  void pad(const Question& asked) {
    const Seconds pad = std::max(Seconds::zero(), task_->generation - asked.natural);
    if (!sleep_until(from_begin(pad), endpoint_->stop())) {
      throw std::runtime_error("stopped");
    }
  }

  tooldecode::Reply ask(std::size_t index, std::stop_token stop) {
    const Question& asked = question(index);
    pad(asked);
    auto reply = endpoint_->client.complete(task_->request(asked), std::move(stop));
    message_   = std::move(reply.message);
    return {std::move(reply.text), std::move(reply.calls)};
  }

  // The reply has the call where it was predicted, as then it must not be run again.
  tooldecode::Reply follow(std::size_t index) {
    const Question& asked = question(index);
    pad(asked);
    Json request           = task_->request(asked);
    request["response_id"] = response();
    request["tool_wait"]   = 5;
    bool is_known = false, is_hit = false;
    const auto take_call = [&](const Json& calls) {
      seen_.call_at        = SteadyClock::now();
      const Json& function = calls.at(0).at("function");
      seen_.call           = {function.at("name").get<std::string>(),
                              tooldecode::tools::parse_json(function.at("arguments").get<std::string>())};
      const std::lock_guard lock(mutex_);
      is_hit = live_.begun.contains(executor_.key(seen_.call));
    };
    endpoint_->stream(std::move(request), [&](const Json& delta) {
      if (!std::exchange(is_known, true)) known_->set_value();
      if (const auto calls = delta.find("pending_tool_calls"); calls != delta.end()) {
        take_call(*calls);
        seen_.is_told = true;
        announce(seen_.call);
      }
      if (const auto calls = delta.find("cached_tool_calls"); calls != delta.end()) {
        if (!seen_.is_told) take_call(*calls);
        seen_.result_at = SteadyClock::now();
        seen_.output    = calls->at(0).at("output").get<std::string>();
      }
      if (const auto text = delta.find("content"); text != delta.end() && text->is_string()) {
        seen_.text += text->get<std::string>();
      }
    });
    tooldecode::Reply reply;
    if (is_hit) reply.calls.push_back(seen_.call);
    return reply;
  }

  [[nodiscard]] std::string response() {
    const std::lock_guard lock(mutex_);
    return live_.response;
  }

  // Runs a call that the engine waits for, or waits for the one that runs.
  void announce(const tooldecode::ToolCall& call) {
    {
      const std::lock_guard lock(mutex_);
      if (live_.announced.contains(executor_.key(call))) return;
    }
    static_cast<void>(executor_.start(call).get(endpoint_->stop()));
  }

  // A tool. Where the engine is to know, it is told before the result is given.
  tooldecode::ToolResult run(const tooldecode::ToolCall& call, std::stop_token stop) {
    const std::string key = executor_.key(call);
    Live live;
    {
      const std::lock_guard lock(mutex_);
      live_.begun.insert(key);
      live = live_;
    }
    const auto end =
        SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(latency_);
    if (!sleep_until(end, std::move(stop))) {
      return {tooldecode::ToolStatus::cancelled, "the tool was stopped"};
    }
    const std::string output = output_of(call);
    if (!live.response.empty()) {
      live.known.wait();
      endpoint_->client.cache_output(live.response, call, output, 60);
      const std::lock_guard lock(mutex_);
      if (live_.response == live.response) live_.announced.insert(key);
    }
    return {tooldecode::ToolStatus::ok, output};
  }

  const Endpoint* endpoint_;
  const Task* task_;
  std::size_t number_;
  Seconds latency_;
  std::vector<Speculation> ways_;
  std::mutex mutex_;  // of what follows
  Live live_;
  // Of the thread that runs the turns.
  std::promise<void>* known_ = nullptr;
  Json message_;
  Seen seen_;
  tooldecode::ToolExecutor executor_;
  std::deque<tooldecode::ClientSpeculator<std::size_t>> speculators_;
};

}  // namespace tool_latency
