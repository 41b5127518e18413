#include <algorithm>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/agent_trace.hpp>

namespace program {

std::vector<tooldecode::ClientModel<Json>> AgentTrace::speculators(
    std::vector<tooldecode::ClientModel<Json>> guessers) {
  for (std::size_t i = 0; file_.is_on() && i < guessers.size(); ++i) {
    guessers[i] = [this, track = "speculator " + std::to_string(i + 1),
                   guess = std::move(guessers[i])](const Json& body, const std::stop_token& stop) {
      return timed(track, "guess", "speculation", [&] { return guess(body, stop); });
    };
  }
  return guessers;
}

void AgentTrace::add(const tooldecode::ClientTurn& turn) {
  const std::lock_guard lock(mutex_);
  turns_.push_back(turn.runs);
}

void AgentTrace::write(Json report) {
  if (!file_.is_on()) return;
  for (auto& [key, value] : report.items()) file_.set(key, std::move(value));
  const std::lock_guard lock(mutex_);
  for (const Tool& run : runs_) spans_.push_back(span_of(run));
  std::ranges::stable_sort(spans_, {}, &TimelineSpan::track);  // order: model, speculators, tools
  for (TimelineSpan& span : spans_) file_.add(std::move(span));
  spans_.clear();
  file_.write();
}

void AgentTrace::set_writing(bool writes) {
  const std::lock_guard lock(mutex_);
  is_writing_ = writes;
}

TimelineSpan AgentTrace::span_of(const Tool& run) const {
  std::string_view outcome = run.is_early ? "wasted" : "asked";
  if (run.is_early && run.turn < turns_.size()) {
    const auto& runs = turns_[run.turn];
    const auto known = std::ranges::find(runs, run.call, &tooldecode::ToolRun::call);
    if (known != runs.end()) outcome = name(known->fate);
  }
  return {"tools",
          run.call.name,
          run.is_early ? "speculation" : "tools",
          run.begin,
          run.end,
          {{"turn", run.turn + 1},
           {"arguments", run.call.arguments},
           {"outcome", outcome},
           {"status", name(run.result.status)},
           {"output", run.result.output}}};
}

}  // namespace program
