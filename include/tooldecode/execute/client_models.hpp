/// \file
/// ClientModels: whom a client asks, who guesses what it will say, and whom it tells of results.
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

/// What a model says in one turn.
struct Reply {
  std::string text{};
  std::vector<ToolCall> calls{};
};

/// Anything that replies to a context: a model in the process, an endpoint, a table. It may throw,
/// and ought to end early where the stop token asks for it.
template <class Context>
using ClientModel = std::function<Reply(const Context&, std::stop_token)>;

/// What the main model may tell of its reply while it comes about, on its own thread: that an
/// engine, of whose tool cache it is, goes on over calls instead of replying with them.
template <class Context>
struct Residence {
  /// The engine has read the results of these calls by itself, and is in the turn that follows:
  /// speculators guess what comes after `next`.
  std::function<void(Context next, const std::vector<ToolCall>& calls)> went_on;
  /// The sequence keeps its place until the results of these calls are in the cache. True where
  /// they will be submitted; otherwise they are calls of the reply, which ought to end with them.
  std::function<bool(const std::vector<ToolCall>& calls)> waits_for;
  /// The reply begins anew, of another engine perhaps: what was told of it is void.
  std::function<void()> began_anew;
};

/// The model whose replies count: a ClientModel, or a function that takes a Residence besides.
///
/// \par Complexity  O(1) beside the function's own work
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
                                      const Residence<Context>&) mutable {
      return model(context, std::move(stop));
    };
  }
  template <class F>
    requires(!std::same_as<F, MainModel> &&
             std::is_invocable_r_v<Reply, F&, const Context&, std::stop_token,
                                   const Residence<Context>&>)
  MainModel(F model) : ask_(std::move(model)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return ask_ != nullptr; }
  Reply operator()(const Context& context, std::stop_token stop,
                   const Residence<Context>& residence) const {
    return ask_(context, std::move(stop), residence);
  }

 private:
  std::function<Reply(const Context&, std::stop_token, const Residence<Context>&)> ask_;
};

/// The model whose replies count, those that guess them, and where results go. Each speculator
/// guesses on a thread of its own. Several that are one model ought to sample, each with a seed of
/// its own: equal guesses are one.
template <class Context>
struct ClientModels {
  MainModel<Context> main{};
  std::vector<ClientModel<Context>> speculators{};  // [λ]
  ToolSubmission<Context> submit{};  ///< none: no engine has a cache, and results stay here
};

}  // namespace tooldecode
