/// \file
/// Agents whose main model decodes its reasoning and whose calls another model guesses.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numbers>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include "server_model.hpp"
#include "simulation.hpp"

namespace tool_latency {

/// Successive questions; each is answered by a call, whose result contains the next one.
struct GuessedTask {
  Json tools                         = Json::array();  ///< as in requests
  bool is_first                      = false;          ///< the first task with these tools
  bool has_long                      = false;          ///< its tools are long ones
  std::vector<std::string> questions = {};             ///< [K]
};

/// Precedes a question in a tool's result.
inline constexpr std::string_view next_question = "The next question: ";

/// The dialogue up to a question: two examples of a thought and a call, then the question.
inline Json messages_of(const std::string& question) {
  const auto example = [](const char* id, const char* thought, const char* tool, Json arguments) {
    const Json function{{"name", tool}, {"arguments", arguments.text()}};
    return Json{
        {"role", "assistant"},
        {"content", thought},
        {"tool_calls", Json::array({{{"id", id}, {"type", "function"}, {"function", function}}})}};
  };
  const auto result = [](const char* id, const std::string& asked) {
    return Json{{"role", "tool"},
                {"tool_call_id", id},
                {"content", "done. " + std::string(next_question) + asked}};
  };
  return Json::array(
      {{{"role", "system"},
        {"content", "Say in one sentence which function the user needs, then call it."}},
       {{"role", "user"}, {"content", "Wake me at half past six."}},
       example("1",
               "Thought: the user wants to be woken at half past six, so the function is set_alarm "
               "with hour 6 and minute 30.\n",
               "set_alarm", {{"hour", 6}, {"minute", 30}}),
       result("1", "find my files with the word 'budget'."),
       example("2",
               "Thought: the user wants to find files with the word 'budget', so the function is "
               "find_files with word 'budget'.\n",
               "find_files", {{"word", "budget"}}),
       result("2", question)});
}

struct GuessedSetup {
  tooldecode::ToolSet tools{};  ///< of all tasks, read-only
  double short_tool      = 0.8;
  double long_tool       = 2;
  std::size_t max_tokens = 72;
  std::uint64_t seed     = 1;
};

struct MadeCall {
  Seconds generation{};  ///< until the client, or the stream, has the call
  Seconds tool{};        ///< from then until the result is where it is needed
  std::string text{};    ///< the reasoning before the call
  tooldecode::ToolCall call{};
  std::string output{};
  std::size_t tokens = 0;  ///< written tokens, if replies are not streams
};

/// One task under one policy.
struct TaskRun {
  Seconds total{};
  std::vector<MadeCall> calls{};
  tooldecode::SpeculationCounts counts{};
  std::vector<Seconds> guesses{};  ///< g of each guess that came in time

  [[nodiscard]] std::size_t hits() const { return counts.hits + counts.residents; }
  [[nodiscard]] bool is_same(const TaskRun& other) const {
    return std::equal(calls.begin(), calls.end(), other.calls.begin(), other.calls.end(),
                      [](const MadeCall& a, const MadeCall& b) {
                        return a.text == b.text && a.call == b.call && a.output == b.output;
                      });
  }
};

/// A policy with its speculator, which lives as long as all tasks.
class GuessingAgent {
 public:
  GuessingAgent(const Endpoint& endpoint, const Endpoint& guesser, const GuessedSetup& setup,
                const Speculation& way, std::size_t calls)
      : endpoint_(&endpoint),
        guesser_(&guesser),
        setup_(&setup),
        way_(way),
        max_calls_(calls),
        model_(endpoint, way.policy, calls),
        executor_([this](const tooldecode::ToolCall& call,
                         std::stop_token stop) { return run(call, std::move(stop)); },
                  setup.tools) {
    auto models = model_.models();
    if (way.policy != Policy::none) {
      models.speculators.push_back([this](const Json& request, std::stop_token stop) {
        return guess(request, std::move(stop));
      });
    }
    tooldecode::ClientOptions options{.policy = tooldecode::SpeculationPolicy(setup.tools)};
    if (way.is_gated) {
      // A tool is called about twice, so what is learned of one is assumed of the others.
      options.expects_gain = [this](std::string_view) { return gate_.expects_gain("any"); };
      options.observe      = [this](std::string_view, const tooldecode::Observation& seen) {
        gate_.observe("any", seen);
      };
    }
    speculator_.emplace(std::move(models), executor_, std::move(options));
  }

  /// The request for a task's first answer.
  [[nodiscard]] static Json request_of(const GuessedTask& task, const GuessedSetup& setup) {
    return {{"messages", messages_of(task.questions.front())},
            {"tools", task.tools},
            {"parallel_tool_calls", false},
            {"temperature", 0},
            {"max_tokens", setup.max_tokens}};
  }
  /// The request for a guess: asks for a call without reasoning, with the last question only.
  [[nodiscard]] static Json guess_of(const Json& tools, std::string_view question,
                                     const GuessedSetup& setup) {
    return {{"messages", Json::array({{{"role", "user"}, {"content", question}}})},
            {"tools", tools},
            {"tool_choice", "required"},
            {"parallel_tool_calls", false},
            {"temperature", 0},
            {"max_tokens", setup.max_tokens}};
  }

  [[nodiscard]] const Speculation& way() const noexcept { return way_; }
  /// The results that the engine received.
  [[nodiscard]] tooldecode::SubmissionCounts submissions() const {
    return speculator_->submissions();
  }

  /// Runs one task, which ends with the result of its last call, or with an answer without a call.
  TaskRun run(const GuessedTask& task) {
    {
      const std::lock_guard lock(mutex_);
      task_ = &task;
      guesses_.clear();
    }
    TaskRun result;
    Json request      = request_of(task, *setup_);
    const auto origin = SteadyClock::now();
    while (result.calls.size() < max_calls_) {
      const auto begin = SteadyClock::now();
      const auto turn  = (*speculator_)(model_.prepared(request), endpoint_->stop());
      result.counts += turn.counts;
      auto since = begin;
      for (const ServerModel::Answered& one : model_.answered()) {
        result.calls.push_back({.generation = one.call_at - since,
                                .tool       = one.result_at - one.call_at,
                                .text       = one.text,
                                .call       = one.call,
                                .output     = one.output});
        since = one.result_at;
      }
      if (turn.reply.calls.size() != 1) break;
      const auto& last = model_.last();
      result.calls.push_back({.generation = turn.generation,
                              .tool       = turn.tools,
                              .text       = last.text,
                              .call       = turn.reply.calls[0],
                              .output     = turn.results[0].output});
      if (const auto usage = last.response.find("usage"); usage != last.response.end()) {
        result.calls.back().tokens = usage->at("completion_tokens").get<std::size_t>();
      }
      for (const Json& message : last.messages) request["messages"].push_back(message);
      request["messages"].push_back({{"role", "tool"},
                                     {"tool_call_id", last.message.at("tool_calls").at(0).at("id")},
                                     {"content", turn.results[0].output}});
    }
    result.total = SteadyClock::now() - origin;
    const std::lock_guard lock(mutex_);
    result.guesses = guesses_;
    return result;
  }

 private:
  tooldecode::Reply guess(const Json& request, std::stop_token stop) {
    // The dialogue of the first question, then a call and its result for each answered question.
    const Json& messages = request.at("messages");
    if (messages.size() >= messages_of("").size() + 2 * max_calls_) return {};
    const std::string& said = messages.back().at("content").string();
    const auto found        = said.find(next_question);
    const auto begin        = SteadyClock::now();
    const auto question     = std::string_view(said).substr(found + next_question.size());
    auto reply = guesser_->client.complete(guess_of(request.at("tools"), question, *setup_), stop);
    const std::lock_guard lock(mutex_);
    if (!stop.stop_requested()) guesses_.push_back(SteadyClock::now() - begin);
    return {std::move(reply.text), std::move(reply.calls)};
  }

  // A tool; its time and output depend only on the task and the call.
  tooldecode::ToolResult run(const tooldecode::ToolCall& call, std::stop_token stop) {
    const GuessedTask* task = nullptr;
    {
      const std::lock_guard lock(mutex_);
      task = task_;
    }
    const std::string key = call.canonical_text();
    const auto sum =
        std::accumulate(key.begin(), key.end(), std::uint64_t{0}, [](std::uint64_t hash, char c) {
          return (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        });
    const auto draw = [&](tooldecode::TokenId what) {
      return tooldecode::core::uniform(setup_->seed, sum, what);
    };
    const double mean = task->has_long ? setup_->long_tool : setup_->short_tool;
    const double normal =
        std::sqrt(-2 * std::log(draw(0))) * std::cos(2 * std::numbers::pi * draw(1));
    const Seconds time(std::max(0.0, mean * (1 + Workload{}.tool_deviation * normal)));
    if (!sleep_for(time, std::move(stop))) {
      return {tooldecode::ToolStatus::cancelled, "the tool was stopped"};
    }
    std::string output = "done, number " + std::to_string(10 + sum % 90) + ". ";
    output += std::string(next_question) + task->questions.back();
    return {tooldecode::ToolStatus::ok, std::move(output)};
  }

  const Endpoint* endpoint_;
  const Endpoint* guesser_;
  const GuessedSetup* setup_;
  Speculation way_;
  std::size_t max_calls_;
  ServerModel model_;
  tooldecode::SpeculationGate gate_{{.overhead = Seconds(0.001)}};
  std::mutex mutex_;  // guards the members below
  const GuessedTask* task_ = nullptr;
  std::vector<Seconds> guesses_;
  tooldecode::ToolExecutor executor_;
  std::optional<tooldecode::ClientSpeculator<Json>> speculator_;
};

}  // namespace tool_latency
