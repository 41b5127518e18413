/// \file
/// ClientLoop: the implementation of ClientSpeculator, independent of the context type.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/execute/tool_submitter.hpp>
#include <tooldecode/execute/turn_times.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// What may be speculated on. A SpeculationGate fits the hooks; without hooks every eligible call
/// within the budget is started.
struct ClientOptions {
  SpeculationPolicy policy{};
  /// Whether a proposed call of an eligible tool is worth starting; called by one thread at a time.
  std::function<bool(std::string_view tool)> expects_gain{};
  /// Called after a turn for each tool that was called or proposed.
  std::function<void(std::string_view tool, const Observation& seen)> observe{};
};

namespace execute {

/// The implementation of ClientSpeculator.
///
/// \par Threads     as ClientSpeculator; so are the other properties
class ClientLoop {
 public:
  using Context = std::shared_ptr<const void>;

  /// \param executor  must outlive the speculator
  ClientLoop(ClientModels<Context> models, ToolExecutor& executor, ClientOptions options);

  ClientLoop(const ClientLoop&)            = delete;
  ClientLoop& operator=(const ClientLoop&) = delete;
  ~ClientLoop();

  [[nodiscard]] ClientTurn run_turn(const Context& context, std::stop_token stop);

  [[nodiscard]] SubmissionCounts submissions() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Proposal {
    ToolCall call{};
    bool is_guess = false;  // else the engine waits for it
    Seconds time{};         // from the stage's begin until the guess
    std::optional<Execution> execution{};
    std::optional<RunFate> fate{};   // if the engine has asked for it
    std::optional<Seconds> asked{};  // when the engine began to wait
  };
  using Proposals = std::map<std::string, Proposal>;

  // Shared by the threads of a turn. A slow speculator may hold it longer than the turn lasts.
  struct Turn {
    explicit Turn(const Context& from) : context(std::make_shared<const Context>(from)) {}

    const std::shared_ptr<const Context> context;
    const Clock::time_point begin                    = Clock::now();
    const std::shared_ptr<std::atomic<bool>> is_over = std::make_shared<std::atomic<bool>>(false);
    std::mutex mutex;  // guards the members below and the mutable state of its stages
    Proposals proposals;
    SpeculationCounts counts;
    Seconds saved{};
    std::vector<std::pair<std::string, Observation>> observed;  // in turns of the engine
  };
  // A turn of the model. A Turn has several if its engine continues after calls.
  struct Stage {
    Stage(std::shared_ptr<Turn> in, std::shared_ptr<const Context> from, Clock::time_point since,
          SpeculationBudget of)
        : turn(std::move(in)), context(std::move(from)), begin(since), budget(std::move(of)) {}

    const std::shared_ptr<Turn> turn;
    const std::shared_ptr<const Context> context;
    const Clock::time_point begin;
    std::size_t serial = 0;
    std::stop_source stop;
    bool is_closed = false;
    SpeculationBudget budget;
    std::size_t ended = 0;  // finished speculators, with or without an error
  };
  void serve(const ClientModel<Context>& speculator, std::stop_token quit);

  // A speculator has finished. If the reply stopped it, it counts as late even if it throws.
  static void end(Stage& stage, const std::optional<std::string>& error);
  // Under the turn's mutex.
  static void count_error(Turn& turn, const std::string& error);

  void propose(Stage& stage, const ToolCall& call);

  // Submits a result when it arrives, if `is_told` accepts it.
  void submit(const std::shared_ptr<Turn>& turn, const Proposal& proposal,
              const std::function<bool(const ToolResult&)>& is_told);

  // The engine waits for results; returns whether it will get them. Calls with effects are refused:
  // the cache would reuse one result for the next equal call.
  bool run_for(const std::shared_ptr<Turn>& turn, const std::vector<ToolCall>& calls);

  // The engine has continued after these calls.
  void count_residents(Turn& turn, const std::vector<ToolCall>& calls, Seconds generation);

  // Forgets the turns of the engine; what was started for them may still be used.
  static void forget_residents(Turn& turn);

  std::shared_ptr<Stage> open(const std::shared_ptr<Turn>& turn,
                              std::shared_ptr<const Context> context, Clock::time_point since,
                              const std::stop_token& stop);
  void stop_stage();

  void close(Stage& stage);
  // Ends the submission too.
  static Proposals close(Turn& turn, ClientTurn& result);

  // The key of each call; a call that has no key gets a unique text that is not a key.
  std::vector<std::string> keys_of(const std::vector<ToolCall>& calls) const;

  bool has_effects(const ToolCall& call) const { return !options_.policy.is_eligible(call.name); }

  static ToolRun record(const Turn& turn, const Proposal& of, std::optional<Seconds> asked);

  // A call of the reply, which may have been started already.
  Proposal begin(const ToolCall& call, Proposals& proposals, const std::string& key,
                 bool is_behind_effect);

  void run(ClientTurn& result, const Turn& turn, Proposals& proposals, Seconds generation,
           const std::stop_token& stop);

  static void waste_others(Proposals& proposals, const std::set<std::string>& wanted,
                           const Turn& turn, ClientTurn& result);

  // A tool counts as predicted right if all its calls were proposed.
  void observe(const ClientTurn& result, const Turn& turn, const Proposals& proposals,
               const std::vector<std::string>& keys, const std::vector<Seconds>& times,
               Seconds generation) const;

  const ClientModels<Context> models_;
  ToolExecutor* executor_;
  const ClientOptions options_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable_any opened_;
  std::shared_ptr<Stage> stage_;  // null between turns
  std::size_t serial_ = 0;
  std::optional<ToolSubmitter<Context>> submitter_{};  // empty if nothing is submitted
  std::vector<std::jthread> threads_;
};

}  // namespace execute

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/client_loop.ipp>
#endif
