#pragma once

#include <exception>
#include <utility>

#include <tooldecode/consistency/ordered_sequence.hpp>
#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/decode/batch_sequence.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/execute/engine_loop.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::execute {

TOOLDECODE_INLINE EngineLoop::EngineLoop(ModelRef model, ToolCache* cache, ResultTokens render,
                                         EngineOptions options, MakeDrafter make_drafter)
    : model_(model),
      cache_(cache),
      render_(std::move(render)),
      options_(options),
      make_drafter_(std::move(make_drafter)),
      batch_(model, options.batch) {}

TOOLDECODE_INLINE void EngineLoop::submit(EngineRequest request, EngineListener listener) {
  decode::require_logits(model_, request.calls);
  const LogitsPipeline pipeline{request.options.logits()};
  decode::require_prompt(model_, request.prompt);
  if (request.options.always_ends) {
    decode::require_room(model_, request.calls, request.prompt, pipeline, request.options);
  }
  if (request.consistency) request.consistency->require();
  const std::lock_guard lock(mutex_);
  if (!ids_.insert(request.id).second) {
    throw Error(Errc::invalid_option, request.id, "must be of no response that is under way");
  }
  inbox_.push_back(PendingRequest{std::move(request), std::move(listener)});
  wake_.notify_all();
}

TOOLDECODE_INLINE void EngineLoop::cancel(std::string_view id) {
  const std::lock_guard lock(mutex_);
  inbox_.push_back(std::string(id));
  wake_.notify_all();
}

TOOLDECODE_INLINE bool EngineLoop::step() {
  const bool moved = advance();
  std::erase_if(active_, [](const auto& entry) { return entry.second->replied; });
  tell_counts();
  return moved;
}

TOOLDECODE_INLINE bool EngineLoop::advance() {
  try {
    const bool heard = read_inbox();
    const bool found = look_for_results();
    return batch_.step() || heard || found;
  } catch (...) {
    fail(current_error("step"));
  }
  return true;
}

TOOLDECODE_INLINE Error EngineLoop::current_error(std::string_view where) {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(Errc::device_failure, std::string(where), error.what());
  }
}

TOOLDECODE_INLINE void EngineLoop::fail(const Error& error) {
  for (const auto& [id, active] : active_) {
    if (active->replied) continue;
    batch_.leave(active->place);
    stop_waiting(*active);
    active->reply.error = error;
    finish(*active);
  }
}

TOOLDECODE_INLINE void EngineLoop::refuse(const std::string& id, const Error& error) {
  const auto found = active_.find(id);
  if (found == active_.end() || found->second->replied) return;
  found->second->reply.error = error;
  finish(*found->second);
}

TOOLDECODE_INLINE void EngineLoop::tell_counts() {
  const std::lock_guard lock(mutex_);
  counts_.batch   = batch_.counts();
  counts_.present = batch_.present();
  counts_.arrived = batch_.arrived();
  told_counts_    = counts_;
}

TOOLDECODE_INLINE void EngineLoop::run() {
  while (step()) {}
}

TOOLDECODE_INLINE void EngineLoop::wait(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto is_due = [this] { return !inbox_.empty(); };
  if (waiting_ == 0) {
    wake_.wait(lock, stop, is_due);
  } else {
    wake_.wait_for(lock, stop, std::chrono::milliseconds(1), is_due);
  }
}

TOOLDECODE_INLINE EngineCounts EngineLoop::counts() const {
  const std::lock_guard lock(mutex_);
  return told_counts_;
}

TOOLDECODE_INLINE bool EngineLoop::read_inbox() {
  std::vector<std::variant<PendingRequest, std::string>> inbox;
  {
    const std::lock_guard lock(mutex_);
    inbox.swap(inbox_);
  }
  for (auto& message : inbox) {
    if (auto* asked = std::get_if<PendingRequest>(&message)) {
      const std::string id = asked->request.id;
      try {
        begin(std::move(*asked));
      } catch (...) {
        refuse(id, current_error("request"));
      }
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

TOOLDECODE_INLINE void EngineLoop::begin(PendingRequest asked) {
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
  struct Held {
    ToolCallFSM calls;  // of the answer that is decoded
    MadeDrafter made;
  };
  const auto held = std::make_shared<Held>(Held{active.request.calls, drafter_of(active)});
  auto prompt =
      needs_later_room(active.request) ? active.request.prompt : std::move(active.request.prompt);
  active.place = batch_.add(
      {.prompt     = std::move(prompt),
       .owner      = held,
       .constraint = held->calls,
       .reset =
           [calls = &held->calls, &active] {
             // The second answer is the first that may have another constraint.
             const bool changes = active.reply.turns.size() == 1;
             if (changes && active.request.calls_after_results) *calls = calls_of(active);
             calls->reset();
           },
       .drafter = held->made.drafter,
       .options = std::move(options),
       .on_end  = [this, &active](const Output& output) { return end_turn(active, output); },
       .on_error =
           [this, &active](const Error& error) {
             active.reply.error = error;
             finish(active);
           },
       .make   = active.request.consistency
                     ? consistency::ordered_sequences(held->calls, *active.request.consistency,
                                                      active.votes)
                     : decode::MakeSequence(),
       .origin = std::move(active.request.origin)});
}

TOOLDECODE_INLINE EngineLoop::MadeDrafter EngineLoop::drafter_of(const Active& active) const {
  const auto lookup = [cache = cache_, &active](std::string_view tool) {
    std::vector<ToolCall> calls;
    if (cache == nullptr) return calls;
    // A client may announce many outputs; a draft's few branches come from the latest.
    constexpr std::size_t most = 64;
    for (CachedCall& found : cache->find_tool(active.request.id, tool, most)) {
      // An entry for any arguments says nothing about the arguments, and a call that was made is
      // not repeated.
      if (found.any_arguments || active.made.contains(found.key)) continue;
      calls.push_back(std::move(found.call));
    }
    return calls;
  };
  return make_drafter_(ToolCacheDrafter{lookup, options_.drafter});
}

TOOLDECODE_INLINE AfterTurn EngineLoop::end_turn(Active& active, const Output& output) {
  auto& turns = active.reply.turns;
  turns.push_back({output, parse(calls_of(active), output)});
  EngineTurn& turn   = turns.back();
  turn.votes         = std::exchange(active.votes, {}).calls;
  const RunTool& run = active.request.run_tool;
  if ((cache_ == nullptr && !run) || turn.calls.empty() ||
      turns.size() >= active.request.max_turns) {
    finish(active);
    return Leave{};
  }
  Awaited awaited{.keys = {}, .found = {}, .deadline = Clock::now() + active.request.max_wait};
  const ToolSet& tools = active.request.calls.tools();
  for (const ToolCall& call : turn.calls) {
    const auto tool = tools.find(call.name);
    awaited.keys.push_back(call_key(call, tool ? &tools[*tool] : nullptr));
    auto& found = awaited.found.emplace_back();
    if (cache_ != nullptr) found = cache_->find(active.request.id, awaited.keys.back());
    if (found || !run) continue;
    if (auto result = run(call); result.valid()) {
      found = CachedCall{.call = call, .key = awaited.keys.back(), .result = std::move(result)};
    }
  }
  active.made.insert(awaited.keys.begin(), awaited.keys.end());
  active.awaited = std::move(awaited);
  set_waiting(+1);
  if (auto more = look_for_results(active)) return GoOn{std::move(*more)};
  if (active.replied) return Leave{};
  return Wait{};
}

TOOLDECODE_INLINE const ToolCallFSM& EngineLoop::calls_of(const Active& active) {
  const auto& later = active.request.calls_after_results;
  return later && !active.reply.turns.empty() ? *later : active.request.calls;
}

TOOLDECODE_INLINE bool EngineLoop::needs_later_room(const EngineRequest& request) {
  return request.options.always_ends && request.calls_after_results;
}

TOOLDECODE_INLINE void EngineLoop::require_later_room(Active& active,
                                                      std::span<const TokenId> more) const {
  EngineRequest& request = active.request;
  if (active.reply.turns.size() != 1 || !needs_later_room(request)) return;
  std::vector<TokenId> prompt = std::exchange(request.prompt, {});
  const auto& emitted         = active.reply.turns[0].output.tokens;
  prompt.insert(prompt.end(), emitted.begin(), emitted.end());
  prompt.insert(prompt.end(), more.begin(), more.end());
  if (prompt.size() > model_.context_length()) return;  // which the model refuses
  decode::require_room(model_, *request.calls_after_results, prompt,
                       LogitsPipeline{request.options.logits()}, request.options);
}

TOOLDECODE_INLINE std::vector<ToolCall> EngineLoop::parse(const ToolCallFSM& calls,
                                                          const Output& output) {
  if (output.finish != Finish::end) return {};
  try {
    return calls.parse(output.tokens);
  } catch (const Error&) {
    return {};  // free text need not follow the format
  }
}

TOOLDECODE_INLINE bool EngineLoop::look_for_results() {
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

TOOLDECODE_INLINE std::optional<std::vector<TokenId>> EngineLoop::look_for_results(Active& active) {
  EngineTurn& turn = active.reply.turns.back();
  Awaited& awaited = *active.awaited;
  std::vector<ToolResult> results;
  bool missing = false;
  for (std::size_t i = 0; i < turn.calls.size(); ++i) {
    auto& found = awaited.found[i];
    if (!found && cache_ != nullptr) found = cache_->peek(active.request.id, awaited.keys[i]);
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
    stop_waiting(active);
    std::vector<TokenId> more;
    try {
      const ResultTokens& own = active.request.render;
      more                    = (own ? own : render_)(turn.calls, results);
      require_later_room(active, more);
    } catch (const Error& error) {  // for example a chat template that takes no results
      active.reply.error = error;
      finish(active);
      return std::nullopt;
    }
    turn.results = std::move(results);
    turn.more    = more;
    ++counts_.cached_turns;
    if (active.listener.on_cached_turn) active.listener.on_cached_turn(turn);
    return more;
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

TOOLDECODE_INLINE ToolResult EngineLoop::result_of(const std::shared_future<ToolResult>& result) {
  try {
    return result.get();
  } catch (const std::exception& error) {
    return {ToolStatus::failed, error.what()};
  } catch (...) {
    return {ToolStatus::failed, "the tool gave no result"};
  }
}

TOOLDECODE_INLINE void EngineLoop::stop_waiting(Active& active) {
  if (!active.awaited) return;
  active.awaited.reset();
  set_waiting(-1);
}

TOOLDECODE_INLINE void EngineLoop::set_waiting(int change) {
  const std::lock_guard lock(mutex_);
  waiting_ += change;
}

TOOLDECODE_INLINE void EngineLoop::finish(Active& active) {
  active.replied = true;
  ++counts_.replies;
  {
    // The receiver of the reply may reuse the id.
    const std::lock_guard lock(mutex_);
    ids_.erase(active.request.id);
  }
  tell_counts();  // who has the reply finds it counted
  if (active.listener.on_reply) active.listener.on_reply(std::move(active.reply));
}

}  // namespace tooldecode::execute
