/// \file
/// ClientModels: the models of a client. ClientTurn: what a turn of it gave.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/execute/tool_submitter.hpp>
#include <tooldecode/execute/turn_times.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// A model's answer in one turn.
struct Reply {
  std::string text{};
  std::vector<ToolCall> calls{};
};

/// Anything that replies to a context: a local model, an endpoint, a table. It may throw, and
/// should end early when the stop token asks for it.
template <class Context>
using ClientModel = std::function<Reply(const Context&, std::stop_token)>;

/// Callbacks by which the main model reports, on its own thread, that an engine continues after
/// calls instead of replying with them. The engine must own the tool cache.
template <class Context>
struct EngineCallbacks {
  /// The engine has read the results of these calls and is in the next turn: speculators now guess
  /// what follows `next`.
  std::function<void(Context next, const std::vector<ToolCall>& calls)> on_continue;
  /// The sequence keeps its place until the results of these calls are in the cache. Returns true
  /// if they will be submitted; otherwise the reply should end with these calls.
  std::function<bool(const std::vector<ToolCall>& calls)> on_wait;
  /// The reply starts again, perhaps on another engine: earlier reports are void.
  std::function<void()> on_restart;
};

/// The model whose replies count: a ClientModel, or a function that also takes EngineCallbacks.
///
/// \par Complexity  O(1) besides the function
/// \par Threads     as the function
template <class Context>
class MainModel {
 public:
  MainModel() = default;
  template <class F>
    requires(!std::same_as<F, MainModel> &&
             std::is_invocable_r_v<Reply, F&, const Context&, std::stop_token>)
  MainModel(F model) {
    if constexpr (std::same_as<F, ClientModel<Context>>) {
      if (!model) return;
    }
    ask_ = [model = std::move(model)](const Context& context, std::stop_token stop,
                                      const EngineCallbacks<Context>&) mutable {
      return model(context, std::move(stop));
    };
  }
  template <class F>
    requires(!std::same_as<F, MainModel> &&
             std::is_invocable_r_v<Reply, F&, const Context&, std::stop_token,
                                   const EngineCallbacks<Context>&>)
  MainModel(F model) : ask_(std::move(model)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return ask_ != nullptr; }
  Reply operator()(const Context& context, std::stop_token stop,
                   const EngineCallbacks<Context>& callbacks) const {
    return ask_(context, std::move(stop), callbacks);
  }

 private:
  std::function<Reply(const Context&, std::stop_token, const EngineCallbacks<Context>&)> ask_;
};

/// The main model, the speculators that guess its replies, and where results go. Each speculator
/// runs on its own thread. Several speculators with the same model should sample with different
/// seeds: equal guesses count once.
template <class Context>
struct ClientModels {
  MainModel<Context> main{};
  std::vector<ClientModel<Context>> speculators{};  // [λ]
  ToolSubmission<Context> submit{};  ///< empty: results are not submitted to an engine
};

/// Counters of speculation, in one or several turns. Started calls end as hits, residents or
/// wasted; calls of the model as hits, residents or misses. A speculator answers, throws or is
/// late.
struct SpeculationCounts {
  std::size_t proposed  = 0;  ///< distinct calls, proposed in time
  std::size_t started   = 0;
  std::size_t hits      = 0;  ///< calls of the model that a started call answered at the client
  std::size_t residents = 0;  ///< calls of the model whose results its engine found in the cache
  std::size_t misses    = 0;  ///< other calls of the model that were run
  std::size_t wasted    = 0;  ///< started but not needed
  std::size_t cancelled = 0;  ///< wasted calls that had not finished
  std::size_t errors    = 0;  ///< speculators that threw, in time
  std::size_t late      = 0;  ///< speculators that had not finished when the reply came
  std::string first_error{};  ///< the first exception's text

  /// Adds the counts of a later turn.
  SpeculationCounts& operator+=(const SpeculationCounts& other);
};

/// How a run of a tool was used.
enum class RunFate : std::uint8_t {
  hit,       ///< started before the model called it
  resident,  ///< as hit, and its result was in the engine's cache when the call ended
  miss,      ///< started when the model called it
  wasted,    ///< never called
};

/// The fate's name in messages and machine-readable output.
[[nodiscard]] constexpr std::string_view name(RunFate fate) noexcept {
  switch (fate) {
    case RunFate::hit:
      return "hit";
    case RunFate::resident:
      return "resident";
    case RunFate::miss:
      return "miss";
    case RunFate::wasted:
      return "wasted";
  }
  return "unknown";
}

/// A run of a tool. Times count from the turn's begin.
struct ToolRun {
  ToolCall call;
  RunFate fate      = RunFate::wasted;
  ToolStatus status = ToolStatus::cancelled;
  std::optional<Seconds> begin{};  ///< empty if it never began
  std::optional<Seconds> asked{};
  Seconds time{};  ///< how long it ran
};

/// The time saved by calls that were asked for together: how much later the last of them would have
/// ended if all had begun only when asked for.
///
/// \par Complexity  O(runs)
[[nodiscard]] Seconds saved_time(std::span<const ToolRun> runs);

/// The main model's reply and the results of its calls.
struct ClientTurn {
  Reply reply{};
  std::vector<ToolResult> results{};  ///< one per call of the reply, in call order
  SpeculationCounts counts{};
  Seconds generation{};         ///< until the reply
  Seconds tools{};              ///< from the reply to the last result
  std::vector<ToolRun> runs{};  ///< of all tools, in the order in which their fates became known
  Seconds saved{};              ///< see saved_time; over all calls of the model
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/client_turn.ipp>
#endif
