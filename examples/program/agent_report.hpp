/// \file
/// Reports what an agent's turns and its speculators did, as text and as JSON.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/execute/tool_submitter.hpp>

#include <program/cluster_counts.hpp>
#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

std::string seconds_text(tooldecode::Seconds time);

/// The text of a result that the next request and the engine read.
std::string output_text(const tooldecode::ToolResult& result);

class AgentReport {
 public:
  explicit AgentReport(std::size_t speculators) : speculators_(speculators) {}

  void add(const tooldecode::ClientTurn& turn, const Json& message);

  [[nodiscard]] Json json(const tooldecode::SubmissionCounts& announced,
                          const ClusterCounts& engines, const Json& messages) const;

  void print_turn(std::ostream& out) const;

  /// Prints all turns: what ran early, and how much of it was useful.
  void print_summary(std::ostream& out, const tooldecode::SubmissionCounts& announced,
                     const ClusterCounts& engines) const;

 private:
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
  std::size_t used_ = 0;  // outputs that the engine used
};

}  // namespace program
