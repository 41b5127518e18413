/// \file
/// The tasks of guessing agents, from the embedded model's held-out rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include "guessing_agent.hpp"
#include <program/files.hpp>
#include <program/paths.hpp>

namespace tool_latency {

/// A tool, and questions that one call of it answers.
struct AskedTool {
  Json document{};
  std::vector<std::string> questions{};
};

/// The document of a row's tool without optional parameters: a small model invents values for them.
inline Json document_of(const Json& row) {
  for (const Json& tool : row.at("tools")) {
    const Json& known = tool.contains("function") ? tool.at("function") : tool;
    if (known.at("name") != row.at("calls").at(0).at("name")) continue;
    Json parameters      = known.at("parameters");
    const Json& required = parameters.value("required", Json::array());
    Json kept            = Json::object();
    for (const auto& [name, schema] : parameters.at("properties").items()) {
      if (std::find(required.begin(), required.end(), name) != required.end()) kept[name] = schema;
    }
    if (!kept.empty()) parameters["properties"] = std::move(kept);
    return {{"name", known.at("name")},
            {"description", known.at("description")},
            {"parameters", std::move(parameters)}};
  }
  throw std::runtime_error("a row's call is to none of its tools");
}

/// All tools, those with the most questions first, so that adjacent tasks share their tools.
inline std::vector<AskedTool> read_asked_tools() {
  std::istringstream lines(
      program::read_file(std::filesystem::path(program::data_folder) / "tiny/heldout.jsonl"));
  std::map<std::string, std::size_t> places;
  std::vector<AskedTool> tools;
  for (std::string line; std::getline(lines, line);) {
    const Json row = tooldecode::text::parse_json(line);
    if (row.at("choice") != "auto" || row.at("calls").size() != 1) continue;
    const auto name            = row.at("calls")[0].at("name").get<std::string>();
    const auto [place, is_new] = places.try_emplace(name, tools.size());
    if (is_new) tools.push_back({document_of(row), {}});
    tools[place->second].questions.push_back(row.at("messages").back().at("content").string());
  }
  std::stable_sort(tools.begin(), tools.end(), [](const AskedTool& a, const AskedTool& b) {
    return a.questions.size() > b.questions.size();
  });
  return tools;
}

/// Tasks of two questions for one tool; short and long tools alternate.
inline std::vector<GuessedTask> make_tasks(std::span<const AskedTool> tools, std::size_t most) {
  std::vector<GuessedTask> tasks;
  for (const AskedTool& tool : tools) {
    for (std::size_t i = 0; i + 1 < tool.questions.size() && tasks.size() < most; ++i) {
      tasks.push_back({.tools = Json::array({{{"type", "function"}, {"function", tool.document}}}),
                       .is_first  = i == 0,
                       .has_long  = tasks.size() % 2 == 1,
                       .questions = {tool.questions[i], tool.questions[i + 1]}});
    }
  }
  return tasks;
}

/// All tools, as read-only ones that may run early.
inline tooldecode::ToolSet read_only_tools(std::span<const AskedTool> tools) {
  Json documents = Json::array();
  for (const AskedTool& tool : tools) {
    documents.push_back({{"name", tool.document.at("name")},
                         {"inputSchema", tool.document.at("parameters")},
                         {"annotations", {{"readOnlyHint", true}}}});
  }
  return tooldecode::ToolSet::from_json(std::move(documents));
}

}  // namespace tool_latency
