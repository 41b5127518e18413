/// \file
/// EngineLoop: the implementation of EngineSpeculator, independent of the types of model and
/// drafters.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
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
#include <variant>
#include <vector>

#include <tooldecode/consistency/call_orders.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_loop.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/fair_order.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/drafter_ref.hpp>
#include <tooldecode/draft/tool_cache_drafter.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/execute/tool_cache.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// The tokens between an answer's last token and the next answer's first: the end of the turn, the
/// results of its calls, and what the chat format writes before an answer. An Error ends the
/// response.
using ResultTokens =
    std::function<std::vector<TokenId>(std::span<const ToolCall>, std::span<const ToolResult>)>;

/// Starts a call that the engine's host runs; a future without a state leaves the call to the client.
/// Called on the engine's thread. Must not block or throw.
using RunTool = std::function<std::shared_future<ToolResult>(const ToolCall&)>;

/// A response that an engine should generate.
struct EngineRequest {
  std::string id;               ///< response id; selects the entries of the tool cache
  std::vector<TokenId> prompt;  ///< [L]
  ToolCallFSM calls;  ///< of its first answer, and of the others unless calls_after_results is set
  DecodeOptions options = {};  ///< used for each of its answers; the listener replaces on_token
  std::size_t max_turns = 8;   ///< most answers, the last one included
  /// How long the sequence keeps its place for results that are not in the cache yet.
  std::chrono::milliseconds max_wait{0};
  RunTool run_tool = {};  ///< for calls that are not in the cache; null: none
  /// Samples each call under several orders of its parameters; no drafts are made then.
  std::optional<OrderConsistencyOptions> consistency{};
  RequestOrigin origin{};  ///< for passes that are shared, see BatchOptions
  ResultTokens render{};   ///< in place of the engine's; null: the engine's
  /// In place of `calls` for answers that follow results; it has the same tools. Whether such an
  /// answer has room to end is known only when the first one begins; if not, it ends the response
  /// with the error.
  std::optional<ToolCallFSM> calls_after_results{};
};

/// One answer of a response.
struct EngineTurn {
  Output output;
  std::vector<ToolCall> calls;
  std::vector<ToolResult> results = {};  ///< of all calls, if the engine found them and continued
  std::vector<CallVote> votes     = {};  ///< on each call, with `consistency`
  std::vector<TokenId> more       = {};  ///< read before the next answer, see ResultTokens
};

/// A response: its answers. The engine continued after all but the last.
struct EngineReply {
  std::vector<EngineTurn> turns;
  bool cancelled = false;
  std::optional<Error> error{};  ///< ended the last answer, which is then not in `turns`
};

/// Callbacks of a response, called on the engine's thread.
struct EngineListener {
  std::function<void(std::size_t turn, const TokenEvent&)> on_token = {};
  /// An answer whose calls the client must run; the response continues when their results are in
  /// the cache.
  std::function<void(const EngineTurn&)> on_calls       = {};
  std::function<void(const EngineTurn&)> on_cached_turn = {};
  std::function<void(EngineReply)> on_reply             = {};
};

/// Settings of an EngineSpeculator.
struct EngineOptions {
  BatchOptions batch              = {};
  ToolCacheDrafterOptions drafter = {};
  /// Limits of cached calls and other drafts together, if there are other drafters.
  DrafterGroupOptions drafts = {.budget = 48};
  /// Costs of the model's passes; limit how much of a draft is verified.
  TreeCosts costs = TreeCosts::flat();
};

/// Counters of an EngineSpeculator.
struct EngineCounts {
  BatchCounts batch;
  std::size_t present      = 0;
  std::size_t arrived      = 0;  ///< responses that wait for a place
  std::size_t replies      = 0;
  std::size_t cached_turns = 0;  ///< answers after which the engine continued
  std::size_t missed_turns = 0;  ///< answers whose calls were left to the client
};

namespace execute {

/// The implementation of EngineSpeculator.
///
/// \par Threads     as EngineSpeculator; so are the other properties
class EngineLoop {
 public:
  struct MadeDrafter {
    std::shared_ptr<const void> owner;
    DrafterRef drafter;
  };
  /// Combines a response's cached calls with other drafters.
  using MakeDrafter = std::function<MadeDrafter(ToolCacheDrafter)>;

  EngineLoop(ModelRef model, ToolCache* cache, ResultTokens render, EngineOptions options,
             MakeDrafter make_drafter);

  void submit(EngineRequest request, EngineListener listener = {});
  void cancel(std::string_view id);

  bool step();
  void run();

  void wait(const std::stop_token& stop);

  [[nodiscard]] EngineCounts counts() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct PendingRequest {
    EngineRequest request;
    EngineListener listener;
  };
  // Results that a sequence keeps its place for.
  struct Awaited {
    std::vector<std::string> keys;
    std::vector<std::optional<CachedCall>> found;
    Clock::time_point deadline;
    bool told = false;  // the client knows that it must run the missing calls
  };
  struct Active {
    EngineRequest request;
    EngineListener listener;
    decode::BatchLoop::Id place    = 0;
    EngineReply reply              = {};
    std::set<std::string> made     = {};  // keys of its calls so far
    std::optional<Awaited> awaited = {};
    Consensus votes{};  // of the answer that is decoded
    bool replied = false;
  };

  bool read_inbox();

  void begin(PendingRequest asked);

  [[nodiscard]] MadeDrafter drafter_of(const Active& active) const;

  AfterTurn end_turn(Active& active, const Output& output);

  // The constraint of the answer that is decoded, or decoded next.
  static const ToolCallFSM& calls_of(const Active& active);

  // Whether answers that follow results have their own constraint and must end.
  static bool needs_later_room(const EngineRequest& request);
  // Throws if such an answer does not fit behind the first one and these tokens.
  void require_later_room(Active& active, std::span<const TokenId> more) const;

  static std::vector<ToolCall> parse(const ToolCallFSM& calls, const Output& output);

  bool look_for_results();

  // The tokens to read next, once all results are there; replies if the sequence cannot wait.
  std::optional<std::vector<TokenId>> look_for_results(Active& active);

  // An exception in the future counts as a failure of the tool.
  static ToolResult result_of(const std::shared_future<ToolResult>& result);

  void stop_waiting(Active& active);
  void set_waiting(int change);

  // Reads the inbox and runs a step; an error that is of no response alone ends them all.
  bool advance();
  // The exception that is being handled; throws it again if it is no std::exception.
  static Error current_error(std::string_view where);
  void fail(const Error& error);
  void refuse(const std::string& id, const Error& error);
  void finish(Active& active);
  // Makes the counts those that `counts` returns.
  void tell_counts();

  ModelRef model_;
  ToolCache* cache_;
  ResultTokens render_;
  EngineOptions options_;
  MakeDrafter make_drafter_;
  decode::BatchLoop batch_;
  std::map<std::string, std::unique_ptr<Active>, std::less<>> active_;
  EngineCounts counts_;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable_any wake_;
  std::vector<std::variant<PendingRequest, std::string>> inbox_;
  std::set<std::string, std::less<>> ids_;
  int waiting_ = 0;
  EngineCounts told_counts_;
};

}  // namespace execute

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/engine_loop.ipp>
#endif
