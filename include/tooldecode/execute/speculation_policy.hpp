/// \file
/// SpeculationPolicy: which tools may run before the model has called them, and how much of that a
/// turn may cost.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/execute/turn_times.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// What may run speculatively, and how much of it per turn.
struct PolicyOptions {
  /// Tools that may run whatever their documents say. Running them must have no effect that
  /// matters. Idempotent is not enough: a mispredicted call is the first one.
  std::vector<std::string> allowed{};
  std::size_t max_calls = 8;
  Seconds max_time{std::numeric_limits<double>::infinity()};
  double max_cost = std::numeric_limits<double>::infinity();  ///< in units of `cost`
  std::function<Seconds(const ToolCall&)> time{};             ///< expected or measured
  std::function<double(const ToolCall&)> cost{};
};

/// The remaining budget of speculation in one turn.
///
/// \par Complexity  O(1) besides the caller's functions
/// \par Threads     one thread at a time
/// \par Errors      none; a call whose time or cost is negative or NaN does not fit
class SpeculationBudget {
 public:
  /// Takes a call's share if it fits; otherwise takes nothing and returns false.
  [[nodiscard]] bool take(const ToolCall& call);

 private:
  friend class SpeculationPolicy;
  explicit SpeculationBudget(const PolicyOptions& options);

  std::size_t calls_;
  Seconds time_;
  double cost_;
  std::function<Seconds(const ToolCall&)> time_of_;
  std::function<double(const ToolCall&)> cost_of_;
};

/// Decides which tools may run before the model has called them: only those whose documents say
/// `readOnlyHint: true`, and those that you list. Unknown names are never eligible.
///
/// \par Complexity  construction O(tools); is_eligible O(log tools)
/// \par Threads     immutable after construction; const members may run concurrently
/// \par Errors      constructor: Error{unknown_tool} for a listed name that no tool has,
///                  Error{invalid_option} for a bound that is negative, NaN, or finite without a
///                  function that measures a call
/// \par Source      Model Context Protocol, tool annotations (readOnlyHint)
class SpeculationPolicy {
 public:
  SpeculationPolicy() = default;  ///< no tool is eligible
  explicit SpeculationPolicy(const ToolSet& tools, PolicyOptions options = {});

  [[nodiscard]] bool is_eligible(std::string_view tool) const { return eligible_.contains(tool); }

  [[nodiscard]] SpeculationBudget budget() const { return SpeculationBudget(options_); }

 private:
  static void check(const char* option, double bound, bool is_measured);

  std::set<std::string, std::less<>> eligible_;
  PolicyOptions options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/speculation_policy.ipp>
#endif
