/// \file
/// What an agent's turns and its speculators did, for people and for machines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/execute/tool_submitter.hpp>
#include <tooldecode/research/performance_model.hpp>

#include <program/cluster_counts.hpp>
#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// Seconds with their unit.
std::string seconds_text(tooldecode::Seconds time);

/// What the next request, and the engine, read of a result.
std::string output_text(const tooldecode::ToolResult& result);

/// Collects the turns of a run.
class AgentReport {
 public:
  explicit AgentReport(std::size_t speculators) : speculators_(speculators) {}

  void add(const tooldecode::ClientTurn& turn, const Json& message);

  [[nodiscard]] Json json(const tooldecode::SubmissionCounts& announced,
                          const ClusterCounts& engines, const Json& messages) const;

  /// The last turn.
  void print_turn(std::ostream& out) const;

  /// All turns: what ran early, and what of it was of use.
  void print_summary(std::ostream& out, const tooldecode::SubmissionCounts& announced,
                     const ClusterCounts& engines) const;

 private:
  // The last turn's model and tools, one line each, from its begin to its end.
  void print_timeline(std::ostream& out) const;

  static Json text_or_null(const std::string& text);
  static Json counts_json(const tooldecode::SpeculationCounts& counts);
  [[nodiscard]] Json turn_json(std::size_t number) const;

  std::size_t speculators_;
  std::vector<tooldecode::ClientTurn> turns_;
  std::vector<Json> messages_;
  tooldecode::SpeculationCounts total_;
  tooldecode::Seconds time_{};
  tooldecode::Seconds saved_{};
  std::size_t used_ = 0;  // outputs that the engine had
};

}  // namespace program
