/// \file
/// What an agent's turns and its speculators did, for people and for machines.
#pragma once

#include <array>
#include <cstddef>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/execute/performance_model.hpp>
#include <tooldecode/execute/tool_result.hpp>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// What came of telling an engine's tool cache of outputs.
struct AnnouncementCounts {
  std::size_t told   = 0;
  std::size_t errors = 0;
  std::string first_error{};
};

/// Seconds with their unit.
inline std::string seconds_text(tooldecode::Seconds time) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << time.count() << " s";
  return text.str();
}

/// Collects the turns of a run.
class AgentReport {
 public:
  explicit AgentReport(std::size_t speculators) : speculators_(speculators) {}

  void add(const tooldecode::ClientTurn& turn, const Json& message) {
    turns_.push_back(turn);
    used_ += message.value("cached_tool_calls", Json::array()).size();
    messages_.push_back(message);
    total_ += turn.counts;
    time_ += turn.generation + turn.tools;
  }

  [[nodiscard]] Json json(const AnnouncementCounts& announced) const {
    Json turns = Json::array();
    for (std::size_t i = 0; i < turns_.size(); ++i) turns.push_back(turn_json(i));
    Json all           = counts_json(total_);
    all["speculators"] = speculators_;
    return {{"turns", turns},
            {"seconds", time_.count()},
            {"speculation", all},
            {"engine_cache",
             {{"told", announced.told},
              {"used", used_},
              {"errors", announced.errors},
              {"first_error", text_or_null(announced.first_error)}}}};
  }

  /// The last turn.
  void print_turn(std::ostream& out) const {
    const tooldecode::ClientTurn& turn = turns_.back();
    out << "Turn " << turns_.size() << ", the model took " << seconds_text(turn.generation) << '\n';
    for (const Json& cached : messages_.back().value("cached_tool_calls", Json::array())) {
      const Json& function = cached.at("function");
      out << "  call    " << function.at("name").get<std::string>() << ' '
          << function.at("arguments").get<std::string>() << "\n  result  "
          << cached.at("output").get<std::string>() << "  (known to the engine)\n";
    }
    if (!turn.reply.text.empty()) out << "  text    " << turn.reply.text << '\n';
    for (std::size_t i = 0; i < turn.reply.calls.size(); ++i) {
      out << "  call    " << turn.reply.calls[i].name << ' '
          << json_text(turn.reply.calls[i].arguments) << "\n  result  "
          << name(turn.results[i].status) << ": " << turn.results[i].output << '\n';
    }
    if (!turn.reply.calls.empty()) {
      out << "  tools   " << seconds_text(turn.tools) << " after the call; " << turn.counts.hits
          << " of " << turn.reply.calls.size() << " had been started early\n";
    }
  }

  /// All turns: what ran early, and what of it was of use.
  void print_summary(std::ostream& out, const AnnouncementCounts& announced) const {
    out << turns_.size() << " turns in " << seconds_text(time_) << '\n';
    if (speculators_ == 0) {
      out << "Nothing was guessed: there is no speculator\n";
      return;
    }
    const std::size_t calls = total_.hits + total_.misses;
    out << "\nSpeculation: " << total_.hits << " of " << calls
        << " calls ran before the model had asked for them\n";
    constexpr std::array columns{"guessed", "ran early", "hits", "misses",
                                 "wasted",  "errors",    "late"};
    out << "   turn";
    for (const char* column : columns) out << "  " << column;
    out << '\n';
    const auto row = [&](const std::string& head, const tooldecode::SpeculationCounts& counts) {
      const std::array values{counts.proposed, counts.started, counts.hits, counts.misses,
                              counts.wasted,   counts.errors,  counts.late};
      out << std::setw(7) << head;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        out << std::setw(static_cast<int>(2 + std::string(columns[i]).size())) << values[i];
      }
      out << '\n';
    };
    for (std::size_t i = 0; i < turns_.size(); ++i) row(std::to_string(i + 1), turns_[i].counts);
    if (turns_.size() > 1) row("all", total_);
    if (total_.errors > 0) out << "The first error: " << total_.first_error << '\n';
    if (announced.told + announced.errors > 0) {
      out << "The engine was told of " << announced.told << " outputs and read " << used_
          << " by itself, which count as wasted above where the reply does not ask for them again";
      if (announced.errors > 0) {
        out << ";\nit would not hear of " << announced.errors << ": " << announced.first_error;
      }
      out << '\n';
    }
  }

 private:
  static Json text_or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  }
  static Json counts_json(const tooldecode::SpeculationCounts& counts) {
    return {{"proposed", counts.proposed},
            {"started", counts.started},
            {"hits", counts.hits},
            {"misses", counts.misses},
            {"wasted", counts.wasted},
            {"cancelled", counts.cancelled},
            {"errors", counts.errors},
            {"late", counts.late},
            {"first_error", text_or_null(counts.first_error)}};
  }
  [[nodiscard]] Json turn_json(std::size_t number) const {
    const tooldecode::ClientTurn& turn = turns_[number];
    Json results                       = Json::array();
    for (const tooldecode::ToolResult& result : turn.results) {
      results.push_back({{"status", name(result.status)}, {"output", result.output}});
    }
    Json told{{"message", messages_[number]},
              {"results", results},
              {"generation_seconds", turn.generation.count()},
              {"tools_seconds", turn.tools.count()}};
    told.update(counts_json(turn.counts));
    return told;
  }

  std::size_t speculators_;
  std::vector<tooldecode::ClientTurn> turns_;
  std::vector<Json> messages_;
  tooldecode::SpeculationCounts total_;
  tooldecode::Seconds time_{};
  std::size_t used_ = 0;  // outputs that the engine had
};

}  // namespace program
