#pragma once

#include <algorithm>
#include <cmath>

#include <tooldecode/execute/speculation_gate.hpp>

namespace tooldecode {

TOOLDECODE_INLINE SpeculationGate::SpeculationGate(GateOptions options)
    : options_(options), keep_(std::exp2(-1 / options.half_life)) {
  if (!(options.half_life > 0 && std::isfinite(options.half_life))) {
    throw Error(Errc::invalid_option, "half_life", options.half_life,
                "must be above 0, and finite");
  }
  if (options.explore_every == 0) {
    throw Error(Errc::invalid_option, "explore_every", options.explore_every, "must be 1 or more");
  }
  if (!(options.exploration_loss > 0 && options.exploration_loss <= 1)) {
    throw Error(Errc::invalid_option, "exploration_loss", options.exploration_loss,
                "must be above 0 and at most 1");
  }
  detail::check_time("overhead", options.overhead);
}

TOOLDECODE_INLINE bool SpeculationGate::expects_gain(std::string_view tool) {
  const std::lock_guard lock(mutex_);
  Tool& state              = tools_[std::string(tool)];
  const ToolEstimate known = estimate_of(state);
  // A prediction of unknown time may be fast.
  const bool may_pay =
      state.generation.weight == 0 || state.tool.weight == 0 || gain_of(known, 1).count() > 0;
  const bool pays = known.has_times && known.gain.count() > 0;
  if ((state.speculations < options_.trials ? may_pay : pays) ||
      static_cast<double>(state.refusals) >= patience(known)) {
    ++state.speculations;
    state.refusals = 0;
    return true;
  }
  ++state.refusals;
  if (state.acceptance.weight > min_evidence) state.acceptance.fade(keep_);
  return false;
}

TOOLDECODE_INLINE void SpeculationGate::observe(std::string_view tool, const Observation& seen) {
  check("generation", seen.generation);
  check("speculation", seen.speculation);
  check("tool", seen.tool);
  check("overhead", seen.overhead);
  check("readmission", seen.readmission);
  const std::lock_guard lock(mutex_);
  Tool& state = tools_[std::string(tool)];
  if (seen.predicted_right) state.acceptance.add(*seen.predicted_right ? 1 : 0, keep_);
  add(state.generation, seen.generation);
  // The model needs the time of correct predictions; a prediction that never came has none.
  if (seen.predicted_right.value_or(true)) add(state.speculation, seen.speculation);
  add(state.tool, seen.tool);
  add(state.overhead, seen.overhead);
  add(state.readmission, seen.readmission);
}

TOOLDECODE_INLINE std::optional<ToolEstimate> SpeculationGate::estimate(
    std::string_view tool) const {
  const std::lock_guard lock(mutex_);
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return std::nullopt;
  return estimate_of(found->second);
}

TOOLDECODE_INLINE void SpeculationGate::Mean::add(double value, double keep) {
  fade(keep);
  sum += value, weight += 1;
}

TOOLDECODE_INLINE Seconds SpeculationGate::Mean::time(Seconds unknown) const {
  return weight > 0 ? Seconds(sum / weight) : unknown;
}

TOOLDECODE_INLINE void SpeculationGate::check(std::string_view what,
                                              const std::optional<Seconds>& time) {
  if (time) detail::check_time(what, *time);
}

TOOLDECODE_INLINE void SpeculationGate::add(Mean& mean, const std::optional<Seconds>& time) const {
  if (time) mean.add(time->count(), keep_);
}

TOOLDECODE_INLINE Seconds SpeculationGate::gain_of(const ToolEstimate& known, double acceptance) {
  const TurnTimes& times = known.times;
  const bool in_time     = times.speculation + times.tool <= times.generation;
  return time_saved(times, acceptance) + (in_time ? acceptance : 0) * known.readmission;
}

TOOLDECODE_INLINE ToolEstimate SpeculationGate::estimate_of(const Tool& tool) const {
  ToolEstimate result;
  result.acceptance  = (tool.acceptance.sum + 0.5) / (tool.acceptance.weight + 1);
  result.evidence    = tool.acceptance.weight;
  result.times       = {tool.generation.time(), tool.speculation.time(), tool.tool.time(),
                        tool.overhead.time(options_.overhead)};
  result.readmission = tool.readmission.time();
  result.has_times =
      tool.generation.weight > 0 && tool.speculation.weight > 0 && tool.tool.weight > 0;
  result.gain = gain_of(result, result.acceptance);
  return result;
}

TOOLDECODE_INLINE double SpeculationGate::patience(const ToolEstimate& known) const {
  const auto min     = static_cast<double>(options_.explore_every);
  const Seconds turn = known.times.generation + known.times.tool;
  if (turn.count() == 0) return min;
  const Seconds loss = known.has_times ? -known.gain : known.times.overhead;
  return std::max(min, loss / (options_.exploration_loss * turn));
}

}  // namespace tooldecode
