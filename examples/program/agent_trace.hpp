/// \file
/// AgentTrace: records when an agent's model, speculators and tools ran.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/json.hpp>
#include <program/timeline.hpp>
#include <program/trace_file.hpp>

namespace program {

/// Wraps the parts of an agent so that each run is a span; without files it wraps nothing. Runs
/// that have not ended when the trace is written are left out.
///
/// \par Threads     wrapped functions: any number; its own members: one
/// \par Errors      as TraceFile; wrapped functions throw as before
class AgentTrace {
  using Clock = TimelineSpan::Clock;

 public:
  AgentTrace(std::vector<std::string> paths, Json about)
      : file_(std::move(paths), "agent", std::move(about)) {}

  /// Calls the model through `ask()`, whose reply has calls.
  template <class Ask>
  [[nodiscard]] std::invoke_result_t<const Ask&> model(const Ask& ask) {
    set_writing(true);
    auto reply = timed("model", "model", "model", ask);
    set_writing(false);
    return reply;
  }

  [[nodiscard]] std::vector<tooldecode::ClientModel<Json>> speculators(
      std::vector<tooldecode::ClientModel<Json>> guessers);

  /// \param run  runs a call
  [[nodiscard]] auto tools(
      std::function<tooldecode::ToolResult(const tooldecode::ToolCall&, const std::stop_token&)>
          run) {
    return [this, run = std::move(run)](const tooldecode::ToolCall& call,
                                        const std::stop_token& stop) {
      if (!file_.is_on()) return run(call, stop);
      std::unique_lock lock(mutex_);
      Tool tool{call, turns_.size(), is_writing_, Clock::now()};
      lock.unlock();
      auto result = run(call, stop);
      tool.end    = Clock::now();
      tool.result = result;
      lock.lock();
      runs_.push_back(std::move(tool));
      return result;
    };
  }

  void add(const tooldecode::ClientTurn& turn);

  /// \param report  of all turns
  void write(Json report);

 private:
  struct Tool {
    tooldecode::ToolCall call;
    std::size_t turn;
    bool is_early;  // the model was still writing
    Clock::time_point begin;
    Clock::time_point end{};
    tooldecode::ToolResult result{};
  };

  void set_writing(bool writes);

  template <class Ask>
  std::invoke_result_t<const Ask&> timed(const std::string& track, const char* name,
                                         const char* category, const Ask& ask) {
    TimelineSpan span{track, name, category, Clock::now(), {}};
    const auto end = [&](const char* key, Json value) {
      span.end       = Clock::now();
      span.args[key] = std::move(value);
      const std::lock_guard lock(mutex_);
      spans_.push_back(std::move(span));
    };
    try {
      auto reply = ask();
      Json calls = Json::array();
      for (const tooldecode::ToolCall& call : reply.calls) {
        calls.push_back({{"name", call.name}, {"arguments", call.arguments}});
      }
      end("calls", std::move(calls));
      return reply;
    } catch (const std::exception& error) {
      end("error", error.what());
      throw;
    }
  }

  [[nodiscard]] TimelineSpan span_of(const Tool& run) const;

  TraceFile file_;
  std::mutex mutex_;  // guards the members below
  bool is_writing_ = false;
  std::vector<std::vector<tooldecode::ToolRun>> turns_;
  std::vector<Tool> runs_;
  std::vector<TimelineSpan> spans_;
};

}  // namespace program
