/// \file
/// ClientModels: the main model of a client, its speculators, and where results are submitted.
#pragma once

#include <concepts>
#include <functional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/execute/tool_submitter.hpp>
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

}  // namespace tooldecode
