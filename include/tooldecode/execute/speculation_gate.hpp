/// \file
/// SpeculationGate: learns at run time whether predicting a tool's calls saves time.
#pragma once

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

/// How a gate learns. It counts turns, not time, so equal histories give equal decisions.
struct GateOptions {
  double half_life          = 16;     ///< newer observations of a mean until one's weight halves
  std::size_t trials        = 8;      ///< speculations on a tool before the gate decides
  std::size_t explore_every = 16;     ///< refusals, at least, between two explorations
  double exploration_loss   = 0.005;  ///< share of all time that exploration may lose
  Seconds overhead{};                 ///< of a speculation, until one is measured
};

/// What a turn showed about a tool; unknown values are empty. A turn without speculation still
/// gives generation and tool time, and the prediction if one was made.
struct Observation {
  std::optional<bool> predicted_right{};
  std::optional<Seconds> generation{};   ///< G: until the main model's call
  std::optional<Seconds> speculation{};  ///< g: until the predicted call; used only if it was right
  std::optional<Seconds> tool{};         ///< T: of any call
  std::optional<Seconds> overhead{};     ///< c: time that speculating cost the turn
  std::optional<Seconds> readmission{};  ///< saved in the engine if a result is cached in time
};

/// A gate's estimate for a tool.
struct ToolEstimate {
  double acceptance = 0;  ///< mean of the posterior with an uninformative prior
  TurnTimes times{};
  Seconds readmission{};
  Seconds gain{};           ///< per speculation; negative for a loss
  bool has_times  = false;  ///< G, g and T have all been seen
  double evidence = 0;      ///< predictions behind the acceptance, discounted by age
};

/// Decides for each tool whether to speculate, from decayed means of α, g, G, T and c.
///
/// The first `trials` speculations on a tool are allowed to collect data, unless its times show
/// that even a correct prediction would save nothing. Then `expects_gain` applies the model: α
/// min(T, G - g) > c; if results are cached in time, α times the readmission is added on the left.
/// A refused tool is explored by a single speculation, after `explore_every` refusals or as many as
/// keep the loss below `exploration_loss` of their time. Refusals also reduce the evidence to a
/// remainder that a few new observations outweigh, so the gate notices changes of the distribution.
///
/// The gate uses means of times. If times vary much, min(T, G - g) of the means exceeds the mean of
/// min(T, G - g), and the gate is too optimistic by this difference.
///
/// \par Complexity  O(log tools) per call; memory for each tool name ever seen
/// \par Threads     all members may run concurrently
/// \par Errors      constructor: Error{invalid_option}; `observe`: Error{invalid_option} for a time
///                  that is negative or not finite
/// \par Source      the model of Nichols et al., arXiv:2512.15834; Jeffreys' prior for α
class SpeculationGate {
 public:
  explicit SpeculationGate(GateOptions options = {});

  /// Whether to speculate on this tool now. Each call counts as a decision.
  [[nodiscard]] bool expects_gain(std::string_view tool);

  void observe(std::string_view tool, const Observation& seen);

  /// The estimate for a tool; empty if its name was never seen.
  [[nodiscard]] std::optional<ToolEstimate> estimate(std::string_view tool) const;

 private:
  // Refusals do not reduce the evidence below this, so that one lucky guess cannot decide.
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

  // Refusals until the loss of one speculation is a small share of their time.
  [[nodiscard]] double patience(const ToolEstimate& known) const;

  GateOptions options_;
  double keep_;  // factor of an observation's weight when a new one arrives
  mutable std::mutex mutex_;
  std::map<std::string, Tool, std::less<>> tools_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/speculation_gate.ipp>
#endif
