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
#include <tooldecode/execute/turn_times.hpp>

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
  explicit SpeculationGate(GateOptions options = {});

  /// Whether to speculate on this tool now. Each call is a decision, and counts as one.
  [[nodiscard]] bool expects_gain(std::string_view tool);

  /// Learns from a turn in which this tool was predicted or called.
  void observe(std::string_view tool, const Observation& seen);

  /// What is known of a tool; nothing for one that was never named.
  [[nodiscard]] std::optional<ToolEstimate> estimate(std::string_view tool) const;

 private:
  // Below this, refusals wear the evidence down no further: one lucky guess is no proof.
  static constexpr double min_evidence = 4;

  struct Mean {
    double sum = 0, weight = 0;

    void fade(double keep) { sum *= keep, weight *= keep; }
    void add(double value, double keep);
    [[nodiscard]] Seconds time(Seconds unknown = {}) const;
  };

  struct Tool {
    Mean acceptance, generation, speculation, tool, overhead, readmission;
    std::size_t speculations = 0;
    std::size_t refusals     = 0;  // since the last speculation
  };

  static void check(std::string_view what, const std::optional<Seconds>& time);
  void add(Mean& mean, const std::optional<Seconds>& time) const;

  static Seconds gain_of(const ToolEstimate& known, double acceptance);

  [[nodiscard]] ToolEstimate estimate_of(const Tool& tool) const;

  // Refusals until the loss of one speculation is a small share of the time that they stand for.
  [[nodiscard]] double patience(const ToolEstimate& known) const;

  GateOptions options_;
  double keep_;  // of an observation's weight, when another comes
  mutable std::mutex mutex_;
  std::map<std::string, Tool, std::less<>> tools_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/speculation_gate.ipp>
#endif
