#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/fields.hpp>
#include <program/hosted_tools.hpp>

namespace program {

namespace {

namespace td = tooldecode;

// The names in `allowed_tools`: an array, or an object with one.
std::vector<std::string> read_allowed(const Fields& entry, const std::vector<std::string>& all) {
  if (entry.find("allowed_tools") == nullptr) return all;
  const bool is_filter = entry.at("allowed_tools").is_object();
  if (is_filter) entry.object("allowed_tools").allow({"tool_names"});
  const Json& given =
      is_filter ? entry.object("allowed_tools").at("tool_names") : entry.at("allowed_tools");
  if (!given.is_array()) entry.fail("allowed_tools", "must be an array of names", "invalid_type");
  std::vector<std::string> names;
  for (const Json& name : given) {
    if (!name.is_string()) entry.fail("allowed_tools", "must be an array of names", "invalid_type");
    if (std::find(all.begin(), all.end(), name.string()) == all.end()) {
      entry.fail("allowed_tools", "names " + name.string() + ", which the server does not have");
    }
    if (std::find(names.begin(), names.end(), name.string()) == names.end()) {
      names.push_back(name.string());
    }
  }
  if (names.empty()) entry.fail("allowed_tools", "must not be empty");
  return names;
}

}  // namespace

HostedTools::HostedTools(std::span<const std::string> servers, std::chrono::milliseconds timeout) {
  Json documents = Json::array();
  for (const std::string& server : servers) {
    const auto refuse = [&](const std::string& what) {
      throw td::Error(td::Errc::invalid_option, "--mcp", server, what);
    };
    const std::size_t end = server.find('=');
    if (end == std::string::npos || end == 0) refuse("must be LABEL=COMMAND");
    const std::string label = server.substr(0, end);
    if (servers_.contains(label)) refuse("has the label of another server");
    const auto started = std::make_shared<McpServer>(server.substr(end + 1), timeout);
    servers_.emplace(label, started);
    try {  // here, and not at each request
      static_cast<void>(td::ToolSet::from_json(started->tools()));
    } catch (const td::Error& error) {
      refuse(error.what());
    }
    for (const Json& document : started->tools()) {
      documents.push_back(document);
      if (!labels_.emplace(document.at("name").string(), label).second) {
        refuse("has a tool of another server, or twice: " + document.at("name").string());
      }
    }
  }
  if (servers_.empty()) return;
  executor_ = std::make_unique<td::ToolExecutor>(
      [this](const td::ToolCall& call, const std::stop_token& stop) {
        return (*servers_.at(labels_.at(call.name)))(call, stop);
      },
      td::ToolSet::from_json(documents), td::ExecutorOptions{.timeout = timeout});
}

HostedTools::Expanded HostedTools::expand(Json& body) const {
  Expanded used;
  const auto tools = body.find("tools");
  if (tools == body.end() || !tools->is_array()) return used;
  std::vector<Json> more;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Json given = (*tools)[i];
    if (!given.is_object() || given.value("type", Json()) != "mcp") continue;
    if (used.tools.is_null()) used.tools = *tools;
    const Fields entry(given, "tools[" + std::to_string(i) + ']');
    for (const char* key : {"server_url", "connector_id", "authorization", "headers"}) {
      if (entry.find(key) == nullptr) continue;
      entry.fail(key, "is not supported: `serve --mcp LABEL=COMMAND` names the servers",
                 "unsupported_value");
    }
    entry.allow(
        {"type", "server_label", "server_description", "allowed_tools", "require_approval"});
    if (entry.find("require_approval") != nullptr && entry.at("require_approval") != "never") {
      entry.fail("require_approval", "is supported as never only: nobody is asked",
                 "unsupported_value");
    }
    const std::string& label = entry.text("server_label");
    const auto server        = servers_.find(label);
    if (server == servers_.end()) {
      std::string known;
      for (const auto& [name, unused] : servers_) known += (known.empty() ? "" : ", ") + name;
      entry.fail("server_label", known.empty() ? "names no server: `serve` runs without --mcp"
                                               : "names no server; there are: " + known);
    }
    const Json& documents = server->second->tools();
    std::vector<std::string> all;
    for (const Json& document : documents) all.push_back(document.at("name").string());
    if (all.empty()) entry.fail("server_label", "names a server without tools");
    bool is_first = true;
    for (const std::string& name : read_allowed(entry, all)) {
      if (!used.labels.emplace(name, label).second) {
        entry.fail("server_label", "repeats a tool of an earlier entry: " + name);
      }
      const auto at =
          static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin());
      if (std::exchange(is_first, false)) {
        (*tools)[i] = documents[at];
      } else {
        more.push_back(documents[at]);
      }
    }
  }
  for (Json& document : more) tools->push_back(std::move(document));
  return used;
}

HostedTools::Run HostedTools::run(const Labels& tools) const {
  if (tools.empty()) return {};
  struct Running {
    std::mutex mutex;
    std::vector<td::Execution> calls;
  };
  return [this, tools, running = std::make_shared<Running>()](const td::ToolCall& call) {
    if (!tools.contains(call.name)) return std::shared_future<td::ToolResult>();
    // Not with an equal call of another request: these tools may have effects.
    td::Execution started = executor_->start_unshared(call);
    const auto result     = started.result();
    const std::lock_guard lock(running->mutex);
    running->calls.push_back(std::move(started));
    return result;
  };
}

}  // namespace program
