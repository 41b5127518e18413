/// \file
/// ClientSpeculator: runs the tools that a model is going to call while it still writes the call.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <exception>
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

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/performance_model.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_result.hpp>
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

/// The model whose replies count, and those that guess them; each guesses on a thread of its own.
/// Several that are one model ought to sample, each with a seed of its own: equal guesses are one.
template <class Context>
struct ClientModels {
  ClientModel<Context> main;
  std::vector<ClientModel<Context>> speculators{};  // [λ]
};

/// What may be speculated on. A SpeculationGate fits the hooks; without them every eligible call
/// that the budget allows is started.
struct ClientOptions {
  SpeculationPolicy policy{};
  /// Whether a proposed call of a tool that is eligible is worth starting; called by one thread at
  /// a time.
  std::function<bool(std::string_view tool)> expects_gain{};
  /// Told after a turn, for each tool that was called or proposed.
  std::function<void(std::string_view tool, const Observation& seen)> observe{};
};

/// What speculation did in a turn, or in several. Calls that were started were hit or wasted; calls
/// of a reply were hits or misses; speculators said something, threw, or were too late.
struct SpeculationCounts {
  std::size_t proposed  = 0;  ///< different calls, in time
  std::size_t started   = 0;
  std::size_t hits      = 0;  ///< calls of the reply that a started one answered
  std::size_t misses    = 0;  ///< the other calls of the reply that were run
  std::size_t wasted    = 0;  ///< started for nothing
  std::size_t cancelled = 0;  ///< those of them that had not come to their end
  std::size_t errors    = 0;  ///< speculators that threw, in time
  std::size_t late      = 0;  ///< speculators that had not come to their end by the reply
  std::string first_error{};  ///< what the first that threw had to say

  /// Adds what came later.
  SpeculationCounts& operator+=(const SpeculationCounts& other) {
    proposed += other.proposed;
    started += other.started;
    hits += other.hits;
    misses += other.misses;
    wasted += other.wasted;
    cancelled += other.cancelled;
    if (errors == 0) first_error = other.first_error;
    errors += other.errors;
    late += other.late;
    return *this;
  }
};

/// A turn: the main model's reply and what came of its calls.
struct ClientTurn {
  Reply reply{};
  std::vector<ToolResult> results{};  ///< one per call, in the order of the calls
  SpeculationCounts counts{};
  Seconds generation{};  ///< until the reply
  Seconds tools{};       ///< from the reply until the last result
};

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
/// \par Shapes      λ speculators; one result per call of the reply
/// \par Complexity  a turn: a copy of the context, and O(proposals + calls) beside the others' work
/// \par Threads     one turn at a time. λ threads, joined by the destructor, which waits for
///                  speculators that do not heed their stop token
/// \par Errors      Error{invalid_option} from the constructor for a generator that is empty; a
///                  turn throws what the main model and `observe` throw. What speculators throw, or
///                  the functions that say whether their calls may start, is counted, with its text
/// \par Source      Nichols et al., arXiv:2512.15834, Algorithm 2
template <class Context>
class ClientSpeculator {
 public:
  static_assert(std::copy_constructible<Context>,
                "ClientSpeculator: make Context copyable: a speculator may read it after its turn");

  /// \param executor  outlives the speculator
  ClientSpeculator(ClientModels<Context> generators, ToolExecutor& executor,
                   ClientOptions options = {})
      : generators_(std::move(generators)), executor_(&executor), options_(std::move(options)) {
    if (!generators_.main) throw Error(Errc::invalid_option, "main", "must not be empty");
    for (const auto& speculator : generators_.speculators) {
      if (!speculator) throw Error(Errc::invalid_option, "speculators", "none must be empty");
    }
    for (const auto& speculator : generators_.speculators) {
      threads_.emplace_back([this, &speculator](std::stop_token quit) { serve(speculator, quit); });
    }
  }

  /// One turn.
  [[nodiscard]] ClientTurn operator()(const Context& context, std::stop_token stop = {}) {
    const auto turn = std::make_shared<Turn>(context, options_.policy.budget());
    const std::stop_callback forward(stop, [&] { turn->stop.request_stop(); });
    {
      const std::lock_guard lock(mutex_);
      turn->serial = ++serial_;
      turn_        = turn;
    }
    opened_.notify_all();
    ClientTurn result;
    try {
      result.reply = generators_.main(context, stop);
    } catch (...) {
      static_cast<void>(close(*turn));
      throw;
    }
    result.generation   = Clock::now() - turn->begin;
    Proposals proposals = close(*turn);
    result.counts       = turn->counts;
    run(result, proposals, stop);
    result.tools = Clock::now() - turn->begin - result.generation;
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Proposal {
    std::string tool;
    Seconds time{};
    std::optional<Execution> execution{};  // where it was started
  };
  using Proposals = std::map<std::string, Proposal>;  // by key

  // What the threads of a turn share; a slow speculator may hold it longer than the turn lasts.
  struct Turn {
    Turn(const Context& from, SpeculationBudget of) : context(from), budget(std::move(of)) {}

    const Context context;
    const Clock::time_point begin = Clock::now();
    std::size_t serial            = 0;
    std::stop_source stop;
    std::mutex mutex;  // guards what follows
    bool is_closed = false;
    SpeculationBudget budget;
    Proposals proposals;
    std::size_t ended = 0;  // speculators, errors included
    SpeculationCounts counts;
  };

  void serve(const ClientModel<Context>& speculator, std::stop_token quit) {
    for (std::size_t last = 0;;) {
      std::shared_ptr<Turn> turn;
      {
        std::unique_lock lock(mutex_);
        opened_.wait(lock, quit, [&] { return turn_ && turn_->serial != last; });
        if (quit.stop_requested()) return;
        turn = turn_;
      }
      last = turn->serial;
      try {
        const Reply guess = speculator(turn->context, turn->stop.get_token());
        for (const ToolCall& call : guess.calls) propose(*turn, call);
        end(*turn, std::nullopt);
      } catch (const std::exception& error) {
        end(*turn, error.what());
      } catch (...) {
        end(*turn, "it threw what is no std::exception");
      }
    }
  }

  // A speculator has come to its end. One that the reply has stopped may well throw: it is late.
  static void end(Turn& turn, const std::optional<std::string>& error) {
    const std::lock_guard lock(turn.mutex);
    if (turn.is_closed) return;
    ++turn.ended;
    if (error && turn.counts.errors++ == 0) turn.counts.first_error = *error;
  }

  void propose(Turn& turn, const ToolCall& call) {
    const std::string key = executor_->key(call);
    const std::lock_guard lock(turn.mutex);
    if (turn.is_closed) return;
    const auto [place, fresh] = turn.proposals.try_emplace(key);
    if (!fresh) return;
    Proposal& proposal = place->second;
    proposal           = {call.name, Clock::now() - turn.begin};
    ++turn.counts.proposed;
    if (!options_.policy.is_eligible(call.name)) return;
    if (options_.expects_gain && !options_.expects_gain(call.name)) return;
    if (!turn.budget.take(call)) return;
    proposal.execution = executor_->try_start(call);
    if (proposal.execution) ++turn.counts.started;
  }

  // Ends the speculation of a turn.
  Proposals close(Turn& turn) {
    {
      const std::lock_guard lock(mutex_);
      turn_.reset();
    }
    Proposals proposals;
    {
      const std::lock_guard lock(turn.mutex);
      turn.is_closed   = true;
      turn.counts.late = threads_.size() - turn.ended;
      proposals.swap(turn.proposals);
    }
    turn.stop.request_stop();
    return proposals;
  }

  // The key of each call; where one cannot be written, a text that no key is and no other call has.
  std::vector<std::string> keys_of(const std::vector<ToolCall>& calls) const {
    std::vector<std::string> keys;
    for (const ToolCall& call : calls) {
      try {
        keys.push_back(executor_->key(call));
      } catch (const Error&) {
        keys.push_back('\n' + std::to_string(keys.size()));
      }
    }
    return keys;
  }

  struct Run {
    Execution execution;
    bool is_hit;
  };

  bool has_effects(const ToolCall& call) const { return !options_.policy.is_eligible(call.name); }

  Run begin(const ToolCall& call, Proposals& proposals, const std::string& key) {
    if (const auto found = proposals.find(key); found != proposals.end()) {
      if (auto early = std::exchange(found->second.execution, {})) return {*std::move(early), true};
    }
    return {has_effects(call) ? executor_->start_unshared(call) : executor_->start(call), false};
  }

  void run(ClientTurn& turn, Proposals& proposals, const std::stop_token& stop) {
    const std::vector<ToolCall>& calls  = turn.reply.calls;
    const std::vector<std::string> keys = keys_of(calls);
    // What was begun before the first effect cannot know of it.
    std::size_t pure = 0;
    while (pure < calls.size() && !has_effects(calls[pure])) ++pure;
    waste_others(proposals, {keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(pure)},
                 turn.counts);

    turn.results.assign(calls.size(), {ToolStatus::cancelled, "the turn was stopped"});
    std::vector<Seconds> times(calls.size());
    for (std::size_t first = 0; first < calls.size() && !stop.stop_requested();) {
      std::size_t last = first + 1;
      if (!has_effects(calls[first])) {
        while (last < calls.size() && !has_effects(calls[last])) ++last;
      }
      std::map<std::string_view, Run> runs;  // equal calls side by side are one
      for (std::size_t i = first; i < last; ++i) {
        auto run = runs.find(keys[i]);
        if (run == runs.end())
          run = runs.emplace(keys[i], begin(calls[i], proposals, keys[i])).first;
        ++(run->second.is_hit ? turn.counts.hits : turn.counts.misses);
      }
      for (; first < last; ++first) {
        Execution& execution = runs.at(keys[first]).execution;
        turn.results[first]  = execution.get(stop);
        times[first]         = execution.time();
      }
    }
    waste_others(proposals, {}, turn.counts);
    if (options_.observe) observe(turn, proposals, keys, times);
  }

  static void waste_others(Proposals& proposals, const std::set<std::string>& wanted,
                           SpeculationCounts& counts) {
    for (auto& [key, proposal] : proposals) {
      if (!proposal.execution || wanted.contains(key)) continue;
      ++counts.wasted;
      if (!proposal.execution->is_done()) ++counts.cancelled;
      proposal.execution.reset();
    }
  }

  // A tool was predicted right where all its calls were proposed.
  void observe(const ClientTurn& turn, const Proposals& proposals,
               const std::vector<std::string>& keys, const std::vector<Seconds>& times) const {
    std::map<std::string_view, Observation> seen;
    const bool predicts = !generators_.speculators.empty();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Observation& of     = seen[turn.reply.calls[i].name];
      const auto proposal = proposals.find(keys[i]);
      const bool right    = proposal != proposals.end();
      const Seconds time  = right ? proposal->second.time : turn.generation;
      if (predicts) {
        of.predicted_right = of.predicted_right.value_or(true) && right;
        of.speculation     = std::max(of.speculation.value_or(Seconds::zero()), time);
      }
      if (turn.results[i].status != ToolStatus::cancelled) {
        of.tool = std::max(of.tool.value_or(Seconds::zero()), times[i]);
      }
    }
    for (const auto& [key, proposal] : proposals) {
      const auto [place, fresh] = seen.try_emplace(proposal.tool);
      if (!fresh) continue;
      place->second.predicted_right = false;
      place->second.speculation     = proposal.time;
    }
    for (auto& [tool, of] : seen) {
      of.generation = turn.generation;
      if (of.speculation) of.speculation = std::min(*of.speculation, turn.generation);
      options_.observe(tool, of);
    }
  }

  const ClientModels<Context> generators_;
  ToolExecutor* executor_;
  const ClientOptions options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any opened_;
  std::shared_ptr<Turn> turn_;  // none between turns
  std::size_t serial_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace tooldecode
