#pragma once

#include <algorithm>
#include <exception>
#include <span>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/client_loop.hpp>

namespace tooldecode::execute {

TOOLDECODE_INLINE ClientLoop::ClientLoop(ClientModels<Context> models, ToolExecutor& executor,
                                         ClientOptions options)
    : models_(std::move(models)), executor_(&executor), options_(std::move(options)) {
  if (!models_.main) throw Error(Errc::invalid_option, "main", "must not be empty");
  for (const auto& speculator : models_.speculators) {
    if (!speculator) throw Error(Errc::invalid_option, "speculators", "none must be empty");
  }
  for (const auto& speculator : models_.speculators) {
    threads_.emplace_back([this, &speculator](std::stop_token quit) { serve(speculator, quit); });
  }
  if (!models_.submit) return;
  submitter_.emplace(models_.submit);
}

TOOLDECODE_INLINE ClientTurn ClientLoop::run_turn(const Context& context, std::stop_token stop) {
  const auto turn = std::make_shared<Turn>(context);
  const std::stop_callback forward(stop, [&] { stop_stage(); });
  std::shared_ptr<Stage> stage = open(turn, turn->context, turn->begin, stop);
  const EngineCallbacks<Context> callbacks{
      .on_continue =
          [&](Context next, const std::vector<ToolCall>& calls) {
            close(*stage);
            count_residents(*turn, calls, Clock::now() - stage->begin);
            stage =
                open(turn, std::make_shared<const Context>(std::move(next)), Clock::now(), stop);
          },
      .on_wait = [&](const std::vector<ToolCall>& calls) { return run_for(turn, calls); },
      .on_restart =
          [&] {
            forget_residents(*turn);
            if (stage->context == turn->context) return;
            close(*stage);
            stage = open(turn, turn->context, Clock::now(), stop);
          }};
  ClientTurn result;
  try {
    result.reply = models_.main(context, stop, callbacks);
  } catch (...) {
    close(*stage);
    static_cast<void>(close(*turn, result));
    throw;
  }
  close(*stage);
  const auto end      = Clock::now();
  result.generation   = end - turn->begin;
  Proposals proposals = close(*turn, result);
  run(result, *turn, proposals, end - stage->begin, stop);
  result.tools = Clock::now() - turn->begin - result.generation;
  return result;
}

TOOLDECODE_INLINE SubmissionCounts ClientLoop::submissions() const {
  return submitter_ ? submitter_->counts() : SubmissionCounts{};
}

TOOLDECODE_INLINE void ClientLoop::serve(const ClientModel<Context>& speculator,
                                         std::stop_token quit) {
  for (std::size_t last = 0;;) {
    std::shared_ptr<Stage> stage;
    {
      std::unique_lock lock(mutex_);
      opened_.wait(lock, quit, [&] { return stage_ && stage_->serial != last; });
      if (quit.stop_requested()) return;
      stage = stage_;
    }
    last = stage->serial;
    try {
      const Reply guess = speculator(*stage->context, stage->stop.get_token());
      for (const ToolCall& call : guess.calls) propose(*stage, call);
      end(*stage, std::nullopt);
    } catch (const std::exception& error) {
      end(*stage, error.what());
    } catch (...) {
      end(*stage, "it threw what is no std::exception");
    }
  }
}

TOOLDECODE_INLINE void ClientLoop::end(Stage& stage, const std::optional<std::string>& error) {
  const std::lock_guard lock(stage.turn->mutex);
  if (stage.is_closed) return;
  ++stage.ended;
  if (error) count_error(*stage.turn, *error);
}

TOOLDECODE_INLINE void ClientLoop::count_error(Turn& turn, const std::string& error) {
  if (turn.counts.errors++ == 0) turn.counts.first_error = error;
}

TOOLDECODE_INLINE void ClientLoop::propose(Stage& stage, const ToolCall& call) {
  Turn& turn = *stage.turn;
  std::string key;
  try {
    key = executor_->key(call);
  } catch (const Error& error) {  // the other calls of the guess may have keys
    const std::lock_guard lock(turn.mutex);
    if (!stage.is_closed) count_error(turn, error.what());
    return;
  }
  const std::lock_guard lock(turn.mutex);
  if (stage.is_closed) return;
  const auto [place, fresh] = turn.proposals.try_emplace(key);
  if (!fresh) return;
  Proposal& proposal = place->second;
  proposal           = {.call = call, .is_guess = true, .time = Clock::now() - stage.begin};
  ++turn.counts.proposed;
  if (!options_.policy.is_eligible(call.name)) return;
  if (options_.expects_gain && !options_.expects_gain(call.name)) return;
  if (!stage.budget.take(call)) return;
  proposal.execution = executor_->try_start(call);
  if (!proposal.execution) return;
  ++turn.counts.started;
  submit(stage.turn, proposal,
         [](const ToolResult& result) { return result.status == ToolStatus::ok; });
}

TOOLDECODE_INLINE void ClientLoop::submit(const std::shared_ptr<Turn>& turn,
                                          const Proposal& proposal,
                                          const std::function<bool(const ToolResult&)>& is_told) {
  if (!submitter_) return;
  proposal.execution->on_result([outbox = submitter_->outbox(), turn, call = proposal.call,
                                 is_told](const ToolResult& result) {
    if (is_told(result)) outbox->put({turn->context, call, result, turn->is_over});
  });
}

TOOLDECODE_INLINE bool ClientLoop::run_for(const std::shared_ptr<Turn>& turn,
                                           const std::vector<ToolCall>& calls) {
  if (!submitter_) return false;
  std::vector<std::string> keys;
  for (const ToolCall& call : calls) {
    if (has_effects(call)) return false;
    try {
      keys.push_back(executor_->key(call));
    } catch (const Error&) {
      return false;
    }
  }
  const std::lock_guard lock(turn->mutex);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Proposal& proposal = turn->proposals[keys[i]];
    if (proposal.asked) continue;  // by an equal call
    proposal.asked   = Clock::now() - turn->begin;
    const bool early = proposal.is_guess && proposal.execution.has_value();
    const bool lost  = early && proposal.execution->is_done();
    proposal.fate    = early ? RunFate::hit : RunFate::miss;
    proposal.call    = calls[i];
    if (!proposal.execution) proposal.execution = executor_->start(calls[i]);
    submit(turn, proposal, [told = early && !lost](const ToolResult& result) {
      return result.status != ToolStatus::cancelled && !(told && result.status == ToolStatus::ok);
    });
  }
  return true;
}

TOOLDECODE_INLINE void ClientLoop::count_residents(Turn& turn, const std::vector<ToolCall>& calls,
                                                   Seconds generation) {
  const std::vector<std::string> keys = keys_of(calls);
  const Seconds now                   = Clock::now() - turn.begin;
  std::vector<ToolRun> runs;
  const std::lock_guard lock(turn.mutex);
  std::map<std::string, RunFate> fates;  // equal calls share one
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto found = turn.proposals.find(keys[i]);
    Proposal* known  = found == turn.proposals.end() ? nullptr : &found->second;
    const auto [fate, fresh] =
        fates.try_emplace(keys[i], known && known->asked ? *known->fate : RunFate::resident);
    ++(fate->second == RunFate::hit    ? turn.counts.hits
       : fate->second == RunFate::miss ? turn.counts.misses
                                       : turn.counts.residents);
    if (!fresh) continue;
    Observation seen{.generation = generation};
    if (known && known->execution) {
      known->fate = fate->second;
      runs.push_back(record(turn, *known, known->asked.value_or(now)));
      seen.tool = runs.back().time;
      known->asked.reset();  // another call may ask for it again
    }
    if (!models_.speculators.empty()) {
      seen.predicted_right = known && known->is_guess;
      seen.speculation     = *seen.predicted_right ? std::min(known->time, generation) : generation;
    }
    turn.observed.emplace_back(calls[i].name, seen);
  }
  turn.saved += saved_time(runs);
}

TOOLDECODE_INLINE void ClientLoop::forget_residents(Turn& turn) {
  const std::lock_guard lock(turn.mutex);
  turn.counts.hits = turn.counts.residents = turn.counts.misses = 0;
  turn.saved                                                    = {};
  turn.observed.clear();
  for (auto& [key, proposal] : turn.proposals) {
    proposal.fate.reset();
    proposal.asked.reset();
  }
}

TOOLDECODE_INLINE std::shared_ptr<ClientLoop::Stage> ClientLoop::open(
    const std::shared_ptr<Turn>& turn, std::shared_ptr<const Context> context,
    Clock::time_point since, const std::stop_token& stop) {
  auto stage = std::make_shared<Stage>(turn, std::move(context), since, options_.policy.budget());
  {
    const std::lock_guard lock(mutex_);
    stage->serial = ++serial_;
    stage_        = stage;
  }
  opened_.notify_all();
  if (stop.stop_requested()) stage->stop.request_stop();
  return stage;
}

TOOLDECODE_INLINE void ClientLoop::stop_stage() {
  std::unique_lock lock(mutex_);
  const auto stage = stage_;
  lock.unlock();
  if (stage) stage->stop.request_stop();
}

TOOLDECODE_INLINE void ClientLoop::close(Stage& stage) {
  {
    const std::lock_guard lock(mutex_);
    stage_.reset();
  }
  {
    const std::lock_guard lock(stage.turn->mutex);
    stage.is_closed = true;
    stage.turn->counts.late += threads_.size() - stage.ended;
  }
  stage.stop.request_stop();
}

TOOLDECODE_INLINE ClientLoop::Proposals ClientLoop::close(Turn& turn, ClientTurn& result) {
  Proposals proposals;
  const std::lock_guard lock(turn.mutex);
  *turn.is_over = true;
  proposals.swap(turn.proposals);
  result.counts = std::move(turn.counts);
  result.saved  = turn.saved;
  return proposals;
}

TOOLDECODE_INLINE std::vector<std::string> ClientLoop::keys_of(
    const std::vector<ToolCall>& calls) const {
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

TOOLDECODE_INLINE ToolRun ClientLoop::record(const Turn& turn, const Proposal& of,
                                             std::optional<Seconds> asked) {
  const Execution& execution = *of.execution;
  ToolRun run{.call = of.call, .fate = of.fate.value_or(RunFate::wasted), .asked = asked};
  if (execution.is_done()) run.status = execution.result().get().status;
  if (const auto begin = execution.begin()) run.begin = *begin - turn.begin;
  run.time = execution.time();
  return run;
}

TOOLDECODE_INLINE ClientLoop::Proposal ClientLoop::begin(const ToolCall& call, Proposals& proposals,
                                                         const std::string& key,
                                                         bool is_behind_effect) {
  Proposal run{.call = call, .fate = RunFate::miss};
  if (const auto found = proposals.find(key); found != proposals.end()) {
    run.execution = std::exchange(found->second.execution, {});
    if (run.execution) run.fate = RunFate::hit;
  }
  if (!run.execution) {
    // A run that another client shares may have begun before the effect.
    run.execution = is_behind_effect ? executor_->start_unshared(call) : executor_->start(call);
  }
  return run;
}

TOOLDECODE_INLINE void ClientLoop::run(ClientTurn& result, const Turn& turn, Proposals& proposals,
                                       Seconds generation, const std::stop_token& stop) {
  const std::vector<ToolCall>& calls  = result.reply.calls;
  const std::vector<std::string> keys = keys_of(calls);
  // What was started before the first effect cannot have seen it.
  std::size_t pure = 0;
  while (pure < calls.size() && !has_effects(calls[pure])) ++pure;
  waste_others(proposals, {keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(pure)}, turn,
               result);

  result.results.assign(calls.size(), {ToolStatus::cancelled, "the turn was stopped"});
  std::vector<Seconds> times(calls.size());
  for (std::size_t first = 0; first < calls.size() && !stop.stop_requested();) {
    std::size_t last = first + 1;
    if (!has_effects(calls[first])) {
      while (last < calls.size() && !has_effects(calls[last])) ++last;
    }
    const Seconds asked = Clock::now() - turn.begin;
    std::map<std::string_view, Proposal> runs;  // adjacent equal calls run once
    for (std::size_t i = first; i < last; ++i) {
      auto run = runs.find(keys[i]);
      if (run == runs.end())
        run = runs.emplace(keys[i], begin(calls[i], proposals, keys[i], first >= pure)).first;
      ++(run->second.fate == RunFate::hit ? result.counts.hits : result.counts.misses);
    }
    for (; first < last; ++first) {
      Execution& execution  = *runs.at(keys[first]).execution;
      result.results[first] = execution.get(stop);
      times[first]          = execution.time();
    }
    const std::size_t before = result.runs.size();
    for (const auto& [key, run] : runs) result.runs.push_back(record(turn, run, asked));
    result.saved += saved_time(std::span(result.runs).subspan(before));
  }
  waste_others(proposals, {}, turn, result);
  if (options_.observe) observe(result, turn, proposals, keys, times, generation);
}

TOOLDECODE_INLINE void ClientLoop::waste_others(Proposals& proposals,
                                                const std::set<std::string>& wanted,
                                                const Turn& turn, ClientTurn& result) {
  for (auto& [key, proposal] : proposals) {
    if (!proposal.execution || wanted.contains(key)) continue;
    const bool was_done = proposal.execution->is_done();
    if (!proposal.fate) ++result.counts.wasted;
    if (!proposal.fate && !was_done) ++result.counts.cancelled;
    proposal.execution->release();
    result.runs.push_back(record(turn, proposal, {}));
    proposal.execution.reset();
  }
}

TOOLDECODE_INLINE void ClientLoop::observe(const ClientTurn& result, const Turn& turn,
                                           const Proposals& proposals,
                                           const std::vector<std::string>& keys,
                                           const std::vector<Seconds>& times,
                                           Seconds generation) const {
  for (const auto& [tool, of] : turn.observed) options_.observe(tool, of);
  std::map<std::string_view, Observation> seen;
  const bool predicts = !models_.speculators.empty();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Observation& of     = seen[result.reply.calls[i].name];
    const auto proposal = proposals.find(keys[i]);
    const bool right    = proposal != proposals.end() && proposal->second.is_guess;
    const Seconds time  = right ? proposal->second.time : generation;
    if (predicts) {
      of.predicted_right = of.predicted_right.value_or(true) && right;
      of.speculation     = std::max(of.speculation.value_or(Seconds::zero()), time);
    }
    if (result.results[i].status != ToolStatus::cancelled) {
      of.tool = std::max(of.tool.value_or(Seconds::zero()), times[i]);
    }
  }
  for (const auto& [key, proposal] : proposals) {
    if (proposal.fate) continue;  // asked for by the engine and already observed
    const auto [place, fresh] = seen.try_emplace(proposal.call.name);
    if (!fresh) continue;
    place->second.predicted_right = false;
    place->second.speculation     = proposal.time;
  }
  for (auto& [tool, of] : seen) {
    of.generation = generation;
    if (of.speculation) of.speculation = std::min(*of.speculation, generation);
    options_.observe(tool, of);
  }
}

TOOLDECODE_INLINE ClientLoop::~ClientLoop() = default;

}  // namespace tooldecode::execute
