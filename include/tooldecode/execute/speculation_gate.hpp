/// \file
/// SpeculationGate: learns while it runs whether predicting a tool's calls saves time, and says so.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/performance_model.hpp>

namespace tooldecode {

/// How a gate learns. Turns are counted, never timed: equal histories give equal decisions.
struct GateOptions {
  double half_life          = 16;     ///< speculations after which an observation counts half
  std::size_t trials        = 8;      ///< speculations on a tool before its acceptance is judged
  std::size_t explore_every = 16;     ///< refusals, at least, before one speculation to look again
  double exploration_loss   = 0.005;  ///< share of all time that looking again may lose
  Seconds overhead{};                 ///< of a speculation, until one is observed
};

/// What a turn showed of a tool; what is not known is left out. A turn that was not speculated on
/// still tells of generation and tool time, and of the prediction where one was made.
struct Observation {
  std::optional<bool> predicted_right{};
  std::optional<Seconds> generation{};   ///< G: until the main model's call
  std::optional<Seconds> speculation{};  ///< g: until the predicted call; counts if it was right
  std::optional<Seconds> tool{};         ///< T, whichever call it answered
  std::optional<Seconds> overhead{};     ///< c: what speculating cost the turn, in time
  std::optional<Seconds> readmission{};  ///< what a result cached in time saves in the engine
};

/// What a gate holds of a tool.
struct ToolEstimate {
  double acceptance = 0;  ///< mean of the posterior, with a prior that knows nothing
  TurnTimes times{};
  Seconds readmission{};
  Seconds gain{};           ///< per speculation; negative where one would lose
  bool has_times  = false;  ///< G, g and T have all been seen
  double evidence = 0;      ///< predictions behind the acceptance, older ones counting less
};

/// Decides tool by tool whether to speculate, from decayed means of α, g, G, T and c.
///
/// A tool's first `trials` speculations are let through, so that there is something to judge by,
/// unless its times show that even a right prediction would save nothing. Then `expects_gain` is
/// the model's answer: α min(T, G - g) > c, with α times the readmission on the left where results
/// are cached in time. A refused tool is looked at again by a single speculation, after
/// `explore_every` refusals or as many as keep the loss below `exploration_loss` of the time
/// that they stand for; refusals also wear the evidence down to a rest that a few new
/// observations outweigh, so a change of the distribution is noticed.
///
/// The means stand for the times: where they vary much, min(T, G - g) of means is more than the
/// mean of it, and the gate is that much too willing.
///
/// \par Complexity  O(log tools) per call; memory for each tool that was ever named
/// \par Threads     all members may run concurrently
/// \par Errors      Error{invalid_option} from the constructor, and from `observe` for a time that
///                  is negative or not finite
/// \par Source      the model of Nichols et al., arXiv:2512.15834; Jeffreys' prior for α
class SpeculationGate {
 public:
  explicit SpeculationGate(GateOptions options = {})
      : options_(options), keep_(std::exp2(-1 / options.half_life)) {
    if (!(options.half_life > 0 && std::isfinite(options.half_life))) {
      throw Error(Errc::invalid_option, "half_life", options.half_life,
                  "must be above 0, and finite");
    }
    if (options.explore_every == 0) {
      throw Error(Errc::invalid_option, "explore_every", options.explore_every,
                  "must be 1 or more");
    }
    if (!(options.exploration_loss > 0 && options.exploration_loss <= 1)) {
      throw Error(Errc::invalid_option, "exploration_loss", options.exploration_loss,
                  "must be above 0 and at most 1");
    }
    detail::check_time("overhead", options.overhead);
  }

  /// Whether to speculate on this tool now. Each call is a decision, and counts as one.
  [[nodiscard]] bool expects_gain(std::string_view tool) {
    const std::lock_guard lock(mutex_);
    Tool& state              = tools_[std::string(tool)];
    const ToolEstimate known = estimate_of(state);
    // A prediction whose time is not known may be the fastest.
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

  /// Learns from a turn in which this tool was predicted or called.
  void observe(std::string_view tool, const Observation& seen) {
    check("generation", seen.generation);
    check("speculation", seen.speculation);
    check("tool", seen.tool);
    check("overhead", seen.overhead);
    check("readmission", seen.readmission);
    const std::lock_guard lock(mutex_);
    Tool& state = tools_[std::string(tool)];
    if (seen.predicted_right) state.acceptance.add(*seen.predicted_right ? 1 : 0, keep_);
    add(state.generation, seen.generation);
    // The model asks what a right prediction takes; one that never came has no time at all.
    if (seen.predicted_right.value_or(true)) add(state.speculation, seen.speculation);
    add(state.tool, seen.tool);
    add(state.overhead, seen.overhead);
    add(state.readmission, seen.readmission);
  }

  /// What is known of a tool; nothing for one that was never named.
  [[nodiscard]] std::optional<ToolEstimate> estimate(std::string_view tool) const {
    const std::lock_guard lock(mutex_);
    const auto found = tools_.find(tool);
    if (found == tools_.end()) return std::nullopt;
    return estimate_of(found->second);
  }

 private:
  // Below this, refusals wear the evidence down no further: one lucky guess is no proof.
  static constexpr double min_evidence = 4;

  struct Mean {
    double sum = 0, weight = 0;

    void fade(double keep) { sum *= keep, weight *= keep; }
    void add(double value, double keep) {
      fade(keep);
      sum += value, weight += 1;
    }
    [[nodiscard]] Seconds time(Seconds unknown = {}) const {
      return weight > 0 ? Seconds(sum / weight) : unknown;
    }
  };

  struct Tool {
    Mean acceptance, generation, speculation, tool, overhead, readmission;
    std::size_t speculations = 0;
    std::size_t refusals     = 0;  // since the last speculation
  };

  static void check(std::string_view what, const std::optional<Seconds>& time) {
    if (time) detail::check_time(what, *time);
  }
  void add(Mean& mean, const std::optional<Seconds>& time) const {
    if (time) mean.add(time->count(), keep_);
  }

  static Seconds gain_of(const ToolEstimate& known, double acceptance) {
    const TurnTimes& times = known.times;
    const bool in_time     = times.speculation + times.tool <= times.generation;
    return time_saved(times, acceptance) + (in_time ? acceptance : 0) * known.readmission;
  }

  [[nodiscard]] ToolEstimate estimate_of(const Tool& tool) const {
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

  // Refusals until the loss of one speculation is a small share of the time that they stand for.
  [[nodiscard]] double patience(const ToolEstimate& known) const {
    const auto min     = static_cast<double>(options_.explore_every);
    const Seconds turn = known.times.generation + known.times.tool;
    if (turn.count() == 0) return min;
    const Seconds loss = known.has_times ? -known.gain : known.times.overhead;
    return std::max(min, loss / (options_.exploration_loss * turn));
  }

  GateOptions options_;
  double keep_;  // of an observation's weight, when another comes
  mutable std::mutex mutex_;
  std::map<std::string, Tool, std::less<>> tools_;
};

}  // namespace tooldecode
