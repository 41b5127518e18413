#pragma once

#include <cmath>
#include <utility>

#include <tooldecode/execute/speculation_policy.hpp>

namespace tooldecode {

TOOLDECODE_INLINE bool SpeculationBudget::take(const ToolCall& call) {
  if (calls_ == 0) return false;
  const Seconds time = time_of_ ? time_of_(call) : Seconds::zero();
  const double cost  = cost_of_ ? cost_of_(call) : 0;
  if (!(time >= Seconds::zero() && time <= time_ && cost >= 0 && cost <= cost_)) return false;
  if (std::isinf(time.count()) || std::isinf(cost)) return false;  // even a budget without bounds
  --calls_;
  time_ -= time;
  cost_ -= cost;
  return true;
}

TOOLDECODE_INLINE SpeculationBudget::SpeculationBudget(const PolicyOptions& options)
    : calls_(options.max_calls),
      time_(options.max_time),
      cost_(options.max_cost),
      time_of_(options.time),
      cost_of_(options.cost) {}

TOOLDECODE_INLINE SpeculationPolicy::SpeculationPolicy(const ToolSet& tools, PolicyOptions options)
    : options_(std::move(options)) {
  for (const Tool& tool : tools) {
    if (tool.read_only) eligible_.insert(tool.name);
  }
  for (const std::string& name : options_.allowed) {
    if (!tools.find(name))
      throw Error(Errc::unknown_tool, "allowed", name, "must be the name of a tool");
    eligible_.insert(name);
  }
  check("max_time", options_.max_time.count(), options_.time != nullptr);
  check("max_cost", options_.max_cost, options_.cost != nullptr);
}

TOOLDECODE_INLINE void SpeculationPolicy::check(const char* option, double bound,
                                                bool is_measured) {
  if (!(bound >= 0)) throw Error(Errc::invalid_option, option, bound, "must be 0 or more");
  if (bound < std::numeric_limits<double>::infinity() && !is_measured) {
    throw Error(Errc::invalid_option, option, bound,
                "must be infinite where no function says what a call takes");
  }
}

}  // namespace tooldecode
