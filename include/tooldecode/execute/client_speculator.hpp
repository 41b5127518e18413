/// \file
/// ClientSpeculator: runs tools that a model will probably call while it still writes the call.
#pragma once

#include <concepts>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include <tooldecode/execute/client_loop.hpp>
#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/execute/tool_submitter.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// Runs the main model and the speculators at the same time. The first speculator that proposes a
/// call starts it, if the policy allows it; the main model's call then finds it running or done.
///
/// The turn's results equal those of the main model alone. Calls take effect in order. Calls that
/// the policy lists as eligible have no effects, so adjacent ones run together and equal ones run
/// once. Any other call runs alone, once per call, after all calls before it. Calls that were
/// started before the reply serve only the calls before the first one with effects. When the reply
/// is there, no speculator is waited for, and every started call that is not needed is cancelled. A
/// turn that is asked to stop starts no further tool; its calls without a result are `cancelled`.
///
/// If results are submitted, those of started calls go to the engine's cache as soon as they are
/// there. An engine that continues after a call begins a turn within the turn: the speculators
/// guess again, and what they start is submitted for the same context. Calls with effects, which
/// end the reply, and failed guesses are not submitted.
///
/// \par Shapes      λ speculators; one result per call of the reply
/// \par Complexity  a turn: one copy of the context and O(proposals + calls), besides models and
///                  tools
/// \par Threads     one turn at a time. Uses λ threads, and one for submissions. The destructor
///                  joins them and waits for speculators that ignore their stop token
/// \par Errors      constructor: Error{invalid_option} for an empty function of ClientModels. A turn throws what
///                  the main model and `observe` throw. Exceptions of speculators, of
///                  `expects_gain` and of submissions are counted, with their text
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithms 2 and 4
template <class Context>
class ClientSpeculator {
 public:
  static_assert(std::copy_constructible<Context>,
                "ClientSpeculator: make Context copyable: a speculator may read it after its turn");

  /// \param executor  must outlive the speculator
  ClientSpeculator(ClientModels<Context> models, ToolExecutor& executor, ClientOptions options = {})
      : loop_(erased(std::move(models)), executor, std::move(options)) {}

  [[nodiscard]] ClientTurn operator()(const Context& context, std::stop_token stop = {}) {
    return loop_.run_turn(std::make_shared<const Context>(context), std::move(stop));
  }

  /// Counts of submissions so far; waits for the one in progress.
  [[nodiscard]] SubmissionCounts submissions() const { return loop_.submissions(); }

 private:
  using Any = execute::ClientLoop::Context;

  static const Context& own(const Any& context) {
    return *static_cast<const Context*>(context.get());
  }
  // Empty functions stay empty.
  static ClientModels<Any> erased(ClientModels<Context> models) {
    ClientModels<Any> all;
    if (models.main) {
      all.main = [main = std::move(models.main)](const Any& context, std::stop_token stop,
                                                 const EngineCallbacks<Any>& callbacks) {
        return main(own(context), std::move(stop),
                    {.on_continue =
                         [&](Context next, const std::vector<ToolCall>& calls) {
                           callbacks.on_continue(std::make_shared<const Context>(std::move(next)),
                                                 calls);
                         },
                     .on_wait    = callbacks.on_wait,
                     .on_restart = callbacks.on_restart});
      };
    }
    for (ClientModel<Context>& speculator : models.speculators) {
      ClientModel<Any>& one = all.speculators.emplace_back();
      if (!speculator) continue;
      one = [ask = std::move(speculator)](const Any& context, std::stop_token stop) {
        return ask(own(context), std::move(stop));
      };
    }
    if (models.submit) {
      all.submit = [submit = std::move(models.submit)](const Any& context, const ToolCall& call,
                                                       const ToolResult& result,
                                                       std::stop_token stop) {
        return submit(own(context), call, result, std::move(stop));
      };
    }
    return all;
  }

  execute::ClientLoop loop_;
};

}  // namespace tooldecode
