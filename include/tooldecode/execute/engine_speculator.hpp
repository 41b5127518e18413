/// \file
/// EngineSpeculator: an engine that goes on over tool calls whose results are already there.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/draft/acceptance_estimate.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/execute/tool_cache.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// The tokens between an answer's last token and the next answer's first: the end of the turn, the
/// results of its calls, and what the model's chat format puts before an answer. Does not throw.
using ResultTokens =
    std::function<std::vector<TokenId>(std::span<const ToolCall>, std::span<const ToolResult>)>;

/// One response that an engine is asked for.
struct EngineRequest {
  std::string id;               ///< the response's; the tool cache is looked up under it
  std::vector<TokenId> prompt;  ///< [L]
  ToolCallFSM calls;            ///< of each of its answers
  DecodeOptions options = {};   ///< of each of its answers; the listener takes on_token's place
  std::size_t max_turns = 8;    ///< answers, the last one included
  /// How long it keeps its place for results that are not in the cache yet.
  std::chrono::milliseconds max_wait{0};
};

/// One answer of a response.
struct EngineTurn {
  Output output;
  std::vector<ToolCall> calls;
  std::vector<ToolResult> results = {};  ///< of all calls, where the engine found them and went on
};

/// A response: its answers, of which all but the last were gone on from.
struct EngineReply {
  std::vector<EngineTurn> turns;
  bool cancelled = false;
};

/// What is told of a response while it comes about, on the engine's thread.
struct EngineListener {
  std::function<void(std::size_t turn, const TokenEvent&)> on_token = {};
  /// An answer whose calls the client must run: it goes on once their results are in the cache.
  std::function<void(const EngineTurn&)> on_calls = {};
  /// An answer whose calls had their results in the cache.
  std::function<void(const EngineTurn&)> on_cached_turn = {};
  std::function<void(EngineReply)> on_reply             = {};
};

/// Settings of an EngineSpeculator.
struct EngineOptions {
  BatchOptions batch              = {};
  ToolCacheDrafterOptions drafter = {};
  /// Of cached calls and other drafts together, where there are others.
  DrafterGroupOptions drafts = {.budget = 48};
  /// Of the model's passes: no more of a draft is verified than is worth its time.
  TreeCosts costs = TreeCosts::flat();
};

/// What an EngineSpeculator has done.
struct EngineCounts {
  BatchCounts batch;
  std::size_t present      = 0;  ///< responses with a place in the batch
  std::size_t arrived      = 0;  ///< responses that wait for one
  std::size_t replies      = 0;
  std::size_t cached_turns = 0;  ///< answers gone on from
  std::size_t missed_turns = 0;  ///< answers whose calls were left to the client
};

/// Answers requests in one continuous batch, and spares those whose tool results are cached the way
/// to the client and back.
///
/// Inside a call the cached calls of its tool that the response has not made before are drafts,
/// verified under the same mask, beside those of other drafters where there are any; at its end a
/// result that is in the cache, or is being computed, is read on top of the KV cache and decoding
/// goes on. Otherwise the reply ends with the call, as without a cache; or, where the request says
/// `max_wait`, the sequence keeps its place until the client has put the result into the cache.
/// Tokens and results are those of a client that runs the same tools and asks again.
///
/// \par Shapes      as ContinuousBatch
/// \par Complexity  step: as ContinuousBatch, and O(sequences that wait for results)
/// \par Threads     submit, cancel and counts from any; step and wait from one
/// \par Errors      as Decoder from `submit`, and Error{invalid_option} for an id that is in use;
///                  nothing afterwards
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithm 5 with its optimisations O2 and O3
template <class M, class... Drafters>
class EngineSpeculator {
  static_assert(diagnose::is_model<M>());

 public:
  /// \param cache     none where no call is ever answered by the engine; outlives the engine
  /// \param drafters  of whatever the answers say; what they refer to outlives the engine
  EngineSpeculator(const M& model, ToolCache* cache, ResultTokens render,
                   EngineOptions options = {}, Drafters... drafters)
      : model_(&model),
        cache_(cache),
        render_(std::move(render)),
        options_(options),
        drafters_(std::move(drafters)...),
        batch_(model, options.batch) {}
  EngineSpeculator(const M&&, ToolCache*, ResultTokens, EngineOptions = {}, Drafters...) = delete;

  /// Asks for a response.
  void submit(EngineRequest request, EngineListener listener = {}) {
    Decoder{*model_, request.calls}.check(request.prompt, request.options);
    static_cast<void>(LogitsPipeline{request.options.logits()});
    const std::lock_guard lock(mutex_);
    if (!ids_.insert(request.id).second) {
      throw Error(Errc::invalid_option, request.id, "must be of no response that is under way");
    }
    inbox_.push_back(Asked{std::move(request), std::move(listener)});
    wake_.notify_all();
  }
  /// Ends a response where it stands; its reply says so.
  void cancel(std::string_view id) {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::string(id));
    wake_.notify_all();
  }

  /// One iteration; false where there was nothing to do.
  bool step() {
    const bool heard = read_inbox();
    const bool found = look_for_results();
    const bool moved = batch_.step();
    std::erase_if(active_, [](const auto& entry) { return entry.second->replied; });
    const std::lock_guard lock(mutex_);
    counts_.batch   = batch_.counts();
    counts_.present = batch_.present();
    counts_.arrived = batch_.arrived();
    told_counts_    = counts_;
    return heard || found || moved;
  }
  /// Steps until nothing is left to do but what waits for results.
  void run() {
    while (step()) {}
  }

  /// Blocks until there may be something to do, or the token says stop.
  void wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto is_due = [this] { return !inbox_.empty(); };
    if (waiting_ == 0) {
      wake_.wait(lock, stop, is_due);
    } else {
      wake_.wait_for(lock, stop, std::chrono::milliseconds(1), is_due);
    }
  }

  [[nodiscard]] EngineCounts counts() const {
    const std::lock_guard lock(mutex_);
    return told_counts_;
  }

 private:
  using Drafter = SizedDrafter<std::conditional_t<sizeof...(Drafters) == 0, ToolCacheDrafter,
                                                  DrafterGroup<ToolCacheDrafter, Drafters...>>>;
  using Batch   = ContinuousBatch<M, ToolCallFSM, Drafter>;
  using Clock   = std::chrono::steady_clock;

  struct Asked {
    EngineRequest request;
    EngineListener listener;
  };
  // Results that a sequence keeps its place for.
  struct Awaited {
    std::vector<std::string> keys;
    std::vector<std::optional<CachedCall>> found;  // of each call
    Clock::time_point deadline;
    bool told = false;  // the client knows that it must run what is not found
  };
  struct Active {
    EngineRequest request;
    EngineListener listener;
    typename Batch::Id place       = 0;
    EngineReply reply              = {};
    std::set<std::string> made     = {};  // keys of its calls so far
    std::optional<Awaited> awaited = {};
    bool replied                   = false;
  };

  bool read_inbox() {
    std::vector<std::variant<Asked, std::string>> inbox;
    {
      const std::lock_guard lock(mutex_);
      inbox.swap(inbox_);
    }
    for (auto& message : inbox) {
      if (auto* asked = std::get_if<Asked>(&message)) {
        begin(std::move(*asked));
      } else if (const auto found = active_.find(std::get<std::string>(message));
                 found != active_.end() && !found->second->replied) {
        Active& active = *found->second;
        batch_.leave(active.place);
        stop_waiting(active);
        active.reply.cancelled = true;
        finish(active);
      }
    }
    return !inbox.empty();
  }

  void begin(Asked asked) {
    auto owned =
        std::make_unique<Active>(Active{std::move(asked.request), std::move(asked.listener)});
    Active& active = *owned;
    active_.emplace(active.request.id, std::move(owned));
    DecodeOptions options = active.request.options;
    options.on_token      = [&active](const TokenEvent& event) {
      if (active.listener.on_token) {
        active.listener.on_token(active.reply.turns.size(), event);
      }
    };
    active.place = batch_.add(
        {.prompt     = std::move(active.request.prompt),
         .constraint = active.request.calls,
         .options    = std::move(options),
         .drafter    = drafter_of(active),
         .on_end     = [this, &active](const Output& output) { return end_turn(active, output); }});
  }

  [[nodiscard]] Drafter drafter_of(const Active& active) const {
    const auto lookup = [cache = cache_, &active](std::string_view tool) {
      std::vector<ToolCall> calls;
      if (cache == nullptr) return calls;
      for (CachedCall& found : cache->find_tool(active.request.id, tool)) {
        // What answers any arguments says nothing of them, and what was asked for is known.
        if (found.any_arguments || active.made.contains(found.key)) continue;
        calls.push_back(std::move(found.call));
      }
      return calls;
    };
    ToolCacheDrafter cached{lookup, options_.drafter};
    if constexpr (sizeof...(Drafters) == 0) {
      return {std::move(cached), options_.costs, learnt_};
    } else {
      return std::apply(
          [&](const Drafters&... others) {
            return Drafter{DrafterGroup{options_.drafts, std::move(cached), others...},
                           options_.costs, learnt_};
          },
          drafters_);
    }
  }

  AfterTurn end_turn(Active& active, const Output& output) {
    auto& turns = active.reply.turns;
    turns.push_back({output, parse(active.request.calls, output)});
    EngineTurn& turn = turns.back();
    if (cache_ == nullptr || turn.calls.empty() || turns.size() >= active.request.max_turns) {
      finish(active);
      return Leave{};
    }
    Awaited awaited{.keys = {}, .found = {}, .deadline = Clock::now() + active.request.max_wait};
    const ToolSet& tools = active.request.calls.tools();
    for (const ToolCall& call : turn.calls) {
      const auto tool = tools.find(call.name);
      awaited.keys.push_back(call_key(call, tool ? &tools[*tool] : nullptr));
      awaited.found.push_back(cache_->find(active.request.id, awaited.keys.back()));
    }
    active.made.insert(awaited.keys.begin(), awaited.keys.end());
    active.awaited = std::move(awaited);
    set_waiting(+1);
    if (auto more = look_for_results(active)) return GoOn{std::move(*more)};
    if (active.replied) return Leave{};
    return Wait{};
  }

  static std::vector<ToolCall> parse(const ToolCallFSM& calls, const Output& output) {
    if (output.finish != Finish::end) return {};
    try {
      return calls.parse(calls.vocabulary().decode(output.tokens));
    } catch (const Error&) {
      return {};  // free text need not be in the format
    }
  }

  bool look_for_results() {
    bool moved = false;
    for (const auto& [id, active] : active_) {
      if (!active->awaited) continue;
      const auto more = look_for_results(*active);
      if (more) batch_.resume(active->place, *more);
      if (active->replied) batch_.leave(active->place);
      moved = moved || more || active->replied;
    }
    return moved;
  }

  // What is to be read next, once all results are there; replies where they cannot be waited for.
  std::optional<std::vector<TokenId>> look_for_results(Active& active) {
    EngineTurn& turn = active.reply.turns.back();
    Awaited& awaited = *active.awaited;
    std::vector<ToolResult> results;
    bool missing = false;
    for (std::size_t i = 0; i < turn.calls.size(); ++i) {
      auto& found = awaited.found[i];
      if (!found) found = cache_->peek(active.request.id, awaited.keys[i]);
      if (!found) missing = true;
      if (!found || found->result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        continue;
      }
      results.push_back(result_of(found->result));
      if (results.back().status == ToolStatus::cancelled) {
        results.pop_back();
        found.reset();
        missing = true;
      }
    }
    if (results.size() == turn.calls.size()) {
      turn.results = std::move(results);
      stop_waiting(active);
      ++counts_.cached_turns;
      if (active.listener.on_cached_turn) active.listener.on_cached_turn(turn);
      return render_(turn.calls, turn.results);
    }
    if (missing && Clock::now() >= awaited.deadline) {
      stop_waiting(active);
      ++counts_.missed_turns;
      finish(active);
    } else if (missing && !awaited.told) {
      awaited.told = true;
      if (active.listener.on_calls) active.listener.on_calls(turn);
    }
    return std::nullopt;
  }

  // A future may hold an exception, which is a failure of the tool like any other.
  static ToolResult result_of(const std::shared_future<ToolResult>& result) {
    try {
      return result.get();
    } catch (const std::exception& error) {
      return {ToolStatus::failed, error.what()};
    } catch (...) {
      return {ToolStatus::failed, "the tool gave no result"};
    }
  }

  void stop_waiting(Active& active) {
    if (!active.awaited) return;
    active.awaited.reset();
    set_waiting(-1);
  }
  void set_waiting(int change) {
    const std::lock_guard lock(mutex_);
    waiting_ += change;
  }

  void finish(Active& active) {
    active.replied = true;
    ++counts_.replies;
    {
      // Who hears of the reply may use the id again.
      const std::lock_guard lock(mutex_);
      ids_.erase(active.request.id);
    }
    if (active.listener.on_reply) active.listener.on_reply(std::move(active.reply));
  }

  const M* model_;
  ToolCache* cache_;
  ResultTokens render_;
  EngineOptions options_;
  std::tuple<Drafters...> drafters_;
  std::shared_ptr<draft::AcceptanceEstimate> learnt_ =
      std::make_shared<draft::AcceptanceEstimate>();  // of all responses' drafts
  Batch batch_;
  std::map<std::string, std::unique_ptr<Active>, std::less<>> active_;
  EngineCounts counts_;

  mutable std::mutex mutex_;  // of what is below
  std::condition_variable_any wake_;
  std::vector<std::variant<Asked, std::string>> inbox_;
  std::set<std::string, std::less<>> ids_;
  int waiting_ = 0;
  EngineCounts told_counts_;
};

}  // namespace tooldecode
