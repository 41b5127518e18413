/// \file
/// ClientSpeculator: runs the tools that a model is going to call while it still writes the call.
#pragma once

#include <concepts>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include <tooldecode/execute/client_loop.hpp>
#include <tooldecode/execute/client_models.hpp>
#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/execute/tool_submitter.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// Runs main model and speculators at once; the first speculator to propose a call starts it, where
/// the policy lets it, and the main model's call finds it running or done.
///
/// The turn is the one that the main model alone would have had: calls take effect in their order;
/// those that the policy has as eligible change nothing, so that neighbours among them run together
/// and equal ones once; any other runs by itself, once per call, after all before it. What was
/// started before the reply serves the calls in front of the first that has effects. Once the reply
/// is there no speculator is waited for, and each call that was started in vain is cancelled. A
/// turn that is asked to stop begins no further tool; its calls without a result are `cancelled`.
///
/// Where results are submitted, those of started calls go to the engine's cache as soon as they are
/// there. An engine that goes on over a call begins a turn within the turn: the speculators guess
/// again, and what they start is submitted for the same context. It is told nothing of calls with
/// effects, which end the reply, nor of guesses that failed.
///
/// \par Shapes      λ speculators; one result per call of the reply
/// \par Complexity  a turn: a copy of the context, and O(proposals + calls) beside the others' work
/// \par Threads     one turn at a time. λ threads, and one that submits, joined by the destructor,
///                  which waits for speculators that do not heed their stop token
/// \par Errors      Error{invalid_option} from the constructor for a generator that is empty; a
///                  turn throws what the main model and `observe` throw. What speculators throw, or
///                  the functions that say whether their calls may start, or that submit, is
///                  counted, with its text
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithms 2 and 4
template <class Context>
class ClientSpeculator {
 public:
  static_assert(std::copy_constructible<Context>,
                "ClientSpeculator: make Context copyable: a speculator may read it after its turn");

  /// \param executor  outlives the speculator
  ClientSpeculator(ClientModels<Context> generators, ToolExecutor& executor,
                   ClientOptions options = {})
      : loop_(erased(std::move(generators)), executor, std::move(options)) {}

  /// One turn.
  [[nodiscard]] ClientTurn operator()(const Context& context, std::stop_token stop = {}) {
    return loop_.run_turn(std::make_shared<const Context>(context), std::move(stop));
  }

  /// What has been submitted so far; waits for what is under way.
  [[nodiscard]] SubmissionCounts submissions() const { return loop_.submissions(); }

 private:
  using Any = execute::ClientLoop::Context;

  static const Context& own(const Any& context) {
    return *static_cast<const Context*>(context.get());
  }
  // What is empty stays so.
  static ClientModels<Any> erased(ClientModels<Context> generators) {
    ClientModels<Any> all;
    if (generators.main) {
      all.main = [main = std::move(generators.main)](const Any& context, std::stop_token stop,
                                                     const Residence<Any>& residence) {
        return main(own(context), std::move(stop),
                    {.went_on =
                         [&](Context next, const std::vector<ToolCall>& calls) {
                           residence.went_on(std::make_shared<const Context>(std::move(next)),
                                             calls);
                         },
                     .waits_for  = residence.waits_for,
                     .began_anew = residence.began_anew});
      };
    }
    for (ClientModel<Context>& speculator : generators.speculators) {
      ClientModel<Any>& one = all.speculators.emplace_back();
      if (!speculator) continue;
      one = [ask = std::move(speculator)](const Any& context, std::stop_token stop) {
        return ask(own(context), std::move(stop));
      };
    }
    if (generators.submit) {
      all.submit = [submit = std::move(generators.submit)](const Any& context, const ToolCall& call,
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
