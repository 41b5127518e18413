/// \file
/// Agents that use a `tooldecode serve`, run tools that sleep, and predict calls from a script.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
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

#include "server_model.hpp"
#include "simulation.hpp"

namespace tool_latency {

/// A question whose answer is one call and then, with its result, text.
struct Question {
  Json messages, tools;
  tooldecode::ToolCall call{};  ///< the model's call without speculation; so are the members below
  std::string output{};
  std::string text{};
  Seconds natural{};  ///< the server's time for the call
};

/// A tool's output: words that depend on the call, after which the model has nothing more to do.
inline std::string output_of(const tooldecode::ToolCall& call) {
  constexpr std::string_view goodbyes[]{"Thank you, that was all.", "Thanks, that was all.",
                                        "Thank you, that is all.", "Thank you, goodbye."};
  const std::string key = call.canonical_text();
  const auto sum        = std::accumulate(key.begin(), key.end(), std::size_t{0});
  return std::string(goodbyes[sum % std::size(goodbyes)]);
}

inline tooldecode::ToolCall spoilt(tooldecode::ToolCall call, std::size_t how) {
  call.arguments.front() = "no " + std::to_string(how);
  return call;
}

struct Task {
  std::vector<Question> questions{};
  tooldecode::ToolSet tools{};         ///< of all questions, read-only
  Seconds generation{}, prediction{};  ///< G, to which calls are padded, and g
  std::size_t max_tokens = 64;
  std::uint64_t seed     = 1;

  [[nodiscard]] Json request(const Question& question) const {
    return {{"messages", question.messages},
            {"tools", question.tools},
            {"temperature", 0},
            {"max_tokens", max_tokens}};
  }
  /// The second request: with the call's result.
  [[nodiscard]] Json request(const Question& question, const Json& message,
                             const std::string& output) const {
    Json result = request(question);
    result["messages"].push_back(message);
    result["messages"].push_back({{"role", "tool"},
                                  {"tool_call_id", message.at("tool_calls").at(0).at("id")},
                                  {"content", output}});
    return result;
  }
};

/// Measurements of a turn, from its question to the text that answers it.
struct RealTurn {
  Seconds total{};
  Seconds generation{};  ///< until the client, or the stream, has the call
  Seconds tool{};        ///< from then until the result is where it is needed
  Seconds guess{};       ///< until the prediction; zero if there was none
  tooldecode::SpeculationCounts counts{};
  bool is_same     = false;  ///< call, result and text equal those without speculation
  bool is_resident = false;  ///< the result was in the engine's cache when the call ended

  [[nodiscard]] bool is_hit() const { return counts.hits + counts.residents > 0; }
  [[nodiscard]] Seconds rest() const { return total - generation - tool; }
};

/// One agent at one tool latency, with several ways to speculate; each turn uses one.
///
/// Without speculation and at the client a turn is two requests: for the call, and with its result
/// for the text. In the engine it is one request, which continues after the call.
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

  RealTurn turn(std::size_t way, std::size_t index) {
    const Question& asked = question(index);
    const Way& by         = *ways_[way];
    index_                = index;
    RealTurn result;
    const auto begin = SteadyClock::now();
    const auto done =
        ways_[way]->speculate(by.model.prepared(task_->request(asked)), endpoint_->stop());
    tooldecode::ToolCall call;
    std::string output, text = by.model.last().text;
    if (const auto& answered = by.model.answered(); !answered.empty()) {
      call              = answered[0].call;
      output            = answered[0].output;
      result.generation = answered[0].call_at - begin;
      result.tool       = answered[0].result_at - answered[0].call_at;
    } else {
      result.generation = done.generation;
      result.tool       = done.tools;
      if (done.reply.calls.size() == 1) {
        call   = done.reply.calls[0];
        output = done.results[0].output;
        text =
            endpoint_->client
                .complete(task_->request(asked, by.model.last().message, output), endpoint_->stop())
                .text;
      }
    }
    result.total       = SteadyClock::now() - begin;
    result.counts      = done.counts;
    result.is_resident = done.counts.residents > 0;
    for (const tooldecode::ToolRun& tool : done.runs) {
      if (tool.fate != tooldecode::RunFate::miss && tool.begin) result.guess = *tool.begin;
    }
    result.is_same = call == asked.call && output == asked.output && text == asked.text;
    return result;
  }

 private:
  struct Way {
    Way(const Endpoint& endpoint, Policy policy) : model(endpoint, policy) {}

    ServerModel model;
    std::optional<tooldecode::ClientSpeculator<Json>> speculator{};

    [[nodiscard]] tooldecode::ClientTurn speculate(const Json& request, std::stop_token stop) {
      return (*speculator)(request, std::move(stop));
    }
  };

  [[nodiscard]] const Question& question(std::size_t index) const {
    // Concurrent agents ask different questions.
    return task_->questions[(index + 5 * number_) % task_->questions.size()];
  }

  void add(const Speculation& way, std::size_t w, std::size_t turns,
           tooldecode::SpeculationGate& gate) {
    Way& added  = *ways_.emplace_back(std::make_unique<Way>(*endpoint_, way.policy));
    auto models = added.model.models();
    models.main = [this, ask = std::move(models.main)](
                      const Json& request, std::stop_token stop,
                      const tooldecode::EngineCallbacks<Json>& residence) {
      pad();
      return ask(request, std::move(stop), residence);
    };
    for (std::size_t s = 0; way.policy != Policy::none && s < way.speculators; ++s) {
      models.speculators.push_back(
          [this, s, script = script(turns, way.acceptance, 100 * (10 * number_ + w) + s)](
              const Json& request, std::stop_token stop) {
            return guess(request, s, script[index_], std::move(stop));
          });
    }
    tooldecode::ClientOptions options{.policy = tooldecode::SpeculationPolicy(task_->tools)};
    if (way.is_gated) {
      // All tools are alike here, so what is learned of one holds for the others.
      options.expects_gain = [&gate](std::string_view) { return gate.expects_gain("any"); };
      options.observe      = [&gate](std::string_view, const tooldecode::Observation& seen) {
        gate.observe("any", seen);
      };
    }
    added.speculator.emplace(std::move(models), executor_, std::move(options));
  }

  // Which turns are predicted correctly: exactly this share of them.
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

  // No call if the engine has continued, because text follows.
  tooldecode::Reply guess(const Json& request, std::size_t speculator, bool is_right,
                          std::stop_token stop) {
    const Question& asked = question(index_);
    if (request.at("messages").size() > asked.messages.size()) return {};
    if (!sleep_for(task_->prediction, std::move(stop))) return {};
    return {"", {is_right ? asked.call : spoilt(asked.call, speculator)}};
  }

  // Stands for the longer time of a larger model.
  void pad() {
    const Seconds pad = std::max(Seconds::zero(), task_->generation - question(index_).natural);
    if (!sleep_for(pad, endpoint_->stop())) throw std::runtime_error("stopped");
  }

  tooldecode::ToolResult run(const tooldecode::ToolCall& call, std::stop_token stop) {
    if (!sleep_for(latency_, std::move(stop))) {
      return {tooldecode::ToolStatus::cancelled, "the tool was stopped"};
    }
    return {tooldecode::ToolStatus::ok, output_of(call)};
  }

  const Endpoint* endpoint_;
  const Task* task_;
  std::size_t number_;
  Seconds latency_;
  std::atomic<std::size_t> index_ = 0;
  tooldecode::ToolExecutor executor_;
  std::vector<std::unique_ptr<Way>> ways_;
};

}  // namespace tool_latency
