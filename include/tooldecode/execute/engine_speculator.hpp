/// \file
/// EngineSpeculator: an engine that continues after tool calls whose results are cached.
#pragma once

#include <memory>
#include <stop_token>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/drafter_ref.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>
#include <tooldecode/execute/engine_loop.hpp>
#include <tooldecode/execute/tool_cache.hpp>

namespace tooldecode {

/// Answers requests in one continuous batch. If the results of tool calls are cached, it saves the
/// round trip to the client.
///
/// Inside a call, the cached calls of its tool that the response has not made before are drafts,
/// verified under the same mask, beside the drafts of other drafters. At the call's end, if the
/// result is in the cache or is being computed, it is read on top of the KV cache and decoding
/// continues; so it does with the results of calls that the request's `run_tool` starts. Otherwise the
/// reply ends with the call, as without a cache. If the request sets `max_wait`, the sequence instead keeps its place until the client puts the result into the
/// cache. Tokens and results equal those of a client that runs the same tools and asks again.
///
/// \par Shapes      as ContinuousBatch
/// \par Complexity  step: as ContinuousBatch, plus O(sequences that wait for results)
/// \par Threads     submit, cancel and counts from any thread; step and wait from one
/// \par Errors      `submit` throws what Decoder throws, and Error{invalid_option} for an id in
///                  use; nothing afterwards
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithm 5 with its optimisations O2 and O3
template <class M, class... Drafters>
class EngineSpeculator {
  static_assert(diagnose::is_model<M>());

  using Drafter = SizedDrafter<std::conditional_t<sizeof...(Drafters) == 0, ToolCacheDrafter,
                                                  DrafterGroup<ToolCacheDrafter, Drafters...>>>;
  static_assert(diagnose::is_drafter<Drafter, ToolCallFSM>());

 public:
  /// \param cache     null: the engine never answers a call; must outlive the engine
  /// \param drafters  for the whole answers; what they refer to must outlive the engine
  EngineSpeculator(const M& model, ToolCache* cache, ResultTokens render,
                   EngineOptions options = {}, Drafters... drafters)
      : drafters_(std::move(drafters)...),
        loop_(model, cache, std::move(render), options, [this, options](ToolCacheDrafter cached) {
          return make(std::move(cached), options);
        }) {
    if constexpr (Drafter::reads_hidden) {
      static_assert(diagnose::is_model_with_states<M>());
    }
  }
  EngineSpeculator(const M&&, ToolCache*, ResultTokens, EngineOptions = {}, Drafters...) = delete;
  EngineSpeculator(const EngineSpeculator&)                                              = delete;
  EngineSpeculator& operator=(const EngineSpeculator&)                                   = delete;

  void submit(EngineRequest request, EngineListener listener = {}) {
    loop_.submit(std::move(request), std::move(listener));
  }
  /// Ends a response in any state; its reply has `cancelled` set.
  void cancel(std::string_view id) { loop_.cancel(id); }

  /// Runs one iteration; false if there was nothing to do.
  bool step() { return loop_.step(); }
  /// Steps until only sequences that wait for results are left.
  void run() { loop_.run(); }

  /// Blocks until there may be something to do, or a stop is requested.
  void wait(const std::stop_token& stop) { loop_.wait(stop); }

  [[nodiscard]] EngineCounts counts() const { return loop_.counts(); }

 private:
  [[nodiscard]] execute::EngineLoop::MadeDrafter make(ToolCacheDrafter cached,
                                                      const EngineOptions& options) const {
    const auto made = std::apply(
        [&](const Drafters&... others) {
          if constexpr (sizeof...(Drafters) == 0) {
            return std::make_shared<const Drafter>(std::move(cached), options.costs, learnt_);
          } else {
            return std::make_shared<const Drafter>(
                DrafterGroup{options.drafts, std::move(cached), others...}, options.costs, learnt_);
          }
        },
        drafters_);
    return {made, DrafterRef::under<ToolCallFSM>(*made)};
  }

  std::tuple<Drafters...> drafters_;
  std::shared_ptr<draft::AcceptanceEstimate> learnt_ =
      std::make_shared<draft::AcceptanceEstimate>();  // shared by all responses
  execute::EngineLoop loop_;
};

}  // namespace tooldecode
