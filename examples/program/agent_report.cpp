#include <algorithm>
#include <array>
#include <cstddef>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

#include <program/agent_report.hpp>

namespace program {

std::string seconds_text(tooldecode::Seconds time) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << time.count() << " s";
  return text.str();
}

std::string output_text(const tooldecode::ToolResult& result) {
  if (result.status == tooldecode::ToolStatus::ok) return result.output;
  return "error: " + std::string(name(result.status)) + ": " + result.output;
}

void AgentReport::add(const tooldecode::ClientTurn& turn, const Json& message) {
  turns_.push_back(turn);
  used_ += message.value("cached_tool_calls", Json::array()).size();
  messages_.push_back(message);
  total_ += turn.counts;
  time_ += turn.generation + turn.tools;
  saved_ += turn.saved;
}

Json AgentReport::json(const tooldecode::SubmissionCounts& announced, const ClusterCounts& engines,
                       const Json& messages) const {
  Json turns = Json::array();
  for (std::size_t i = 0; i < turns_.size(); ++i) turns.push_back(turn_json(i));
  Json all           = counts_json(total_);
  all["speculators"] = speculators_;
  return {{"turns", turns},
          {"messages", messages},
          {"seconds", time_.count()},
          {"saved_seconds", saved_.count()},
          {"speculation", all},
          {"engines",
           {{"requests", engines.requests},
            {"retries", engines.retries},
            {"moved", engines.moved},
            {"retold", engines.retold},
            {"first_failure", text_or_null(engines.first_failure)}}},
          {"engine_cache",
           {{"told", announced.told},
            {"used", used_},
            {"errors", announced.errors},
            {"first_error", text_or_null(announced.first_error)}}}};
}

void AgentReport::print_turn(std::ostream& out) const {
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
        << " of " << turn.counts.hits + turn.counts.misses << " had been started early\n";
  }
  print_timeline(out);
}

void AgentReport::print_summary(std::ostream& out, const tooldecode::SubmissionCounts& announced,
                                const ClusterCounts& engines) const {
  out << turns_.size() << " turns in " << seconds_text(time_) << '\n';
  if (engines.retries > 0) {
    out << "Engines failed: " << engines.retries << " requests were asked again, " << engines.moved
        << " of another engine, which was told " << engines.retold
        << " outputs anew;\nthe first failure: " << engines.first_failure << '\n';
  }
  if (speculators_ == 0) {
    out << "Nothing was guessed: there is no speculator\n";
    return;
  }
  const std::size_t early = total_.hits + total_.residents;
  out << "\nSpeculation: " << early << " of " << early + total_.misses
      << " calls ran before the model had asked for them, which saved " << seconds_text(saved_)
      << " of tools' time\n";
  constexpr std::array columns{"guessed", "ran early", "hits",   "in engine",
                               "misses",  "wasted",    "errors", "late"};
  out << "   turn";
  for (const char* column : columns) out << "  " << column;
  out << '\n';
  const auto row = [&](const std::string& head, const tooldecode::SpeculationCounts& counts) {
    const std::array values{counts.proposed, counts.started, counts.hits,   counts.residents,
                            counts.misses,   counts.wasted,  counts.errors, counts.late};
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
        << " by itself";
    if (announced.errors > 0) {
      out << ";\nit would not hear of " << announced.errors << ": " << announced.first_error;
    }
    out << '\n';
  }
}

void AgentReport::print_timeline(std::ostream& out) const {
  using tooldecode::Seconds;
  const tooldecode::ClientTurn& turn = turns_.back();
  if (turn.runs.empty()) return;
  Seconds end = turn.generation + turn.tools;
  for (const tooldecode::ToolRun& run : turn.runs) {
    if (run.begin) end = std::max(end, *run.begin + run.time);
  }
  const auto line = [&](std::string_view head, Seconds begin, Seconds time,
                        const std::string& what) {
    constexpr double width = 40;
    const double scale     = end > Seconds::zero() ? width / end.count() : 0;
    const auto first       = static_cast<std::size_t>(begin.count() * scale);
    const auto last        = static_cast<std::size_t>((begin + time).count() * scale);
    std::string bar(static_cast<std::size_t>(width) + 1, ' ');
    for (std::size_t i = first; i <= last && i < bar.size(); ++i) bar[i] = '=';
    out << "  " << std::left << std::setw(8) << head << std::right << " |" << bar << "| "
        << seconds_text(begin) << " to " << seconds_text(begin + time) << what << '\n';
  };
  line("model", Seconds::zero(), turn.generation, "");
  for (const tooldecode::ToolRun& run : turn.runs) {
    const std::string call = "  " + run.call.name + ' ' + json_text(run.call.arguments);
    if (run.begin) {
      line(name(run.fate), *run.begin, run.time, call);
    } else {
      out << "  " << name(run.fate) << ", never begun" << call << '\n';
    }
  }
  if (turn.saved > Seconds::zero()) {
    out << "  saved   " << seconds_text(turn.saved) << '\n';
  }
}

Json AgentReport::text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json AgentReport::counts_json(const tooldecode::SpeculationCounts& counts) {
  return {{"proposed", counts.proposed},   {"started", counts.started},
          {"hits", counts.hits},           {"residents", counts.residents},
          {"misses", counts.misses},       {"wasted", counts.wasted},
          {"cancelled", counts.cancelled}, {"errors", counts.errors},
          {"late", counts.late},           {"first_error", text_or_null(counts.first_error)}};
}

Json AgentReport::turn_json(std::size_t number) const {
  const tooldecode::ClientTurn& turn = turns_[number];
  Json results                       = Json::array();
  for (const tooldecode::ToolResult& result : turn.results) {
    results.push_back({{"status", name(result.status)}, {"output", result.output}});
  }
  const auto seconds_or_null = [](const std::optional<tooldecode::Seconds>& time) {
    return time ? Json(time->count()) : Json(nullptr);
  };
  Json runs = Json::array();
  for (const tooldecode::ToolRun& run : turn.runs) {
    runs.push_back({{"name", run.call.name},
                    {"arguments", run.call.arguments},
                    {"fate", name(run.fate)},
                    {"status", name(run.status)},
                    {"begin", seconds_or_null(run.begin)},
                    {"asked", seconds_or_null(run.asked)},
                    {"seconds", run.time.count()}});
  }
  Json told{{"message", messages_[number]},
            {"results", results},
            {"runs", runs},
            {"saved_seconds", turn.saved.count()},
            {"generation_seconds", turn.generation.count()},
            {"tools_seconds", turn.tools.count()}};
  told.update(counts_json(turn.counts));
  return told;
}

}  // namespace program
