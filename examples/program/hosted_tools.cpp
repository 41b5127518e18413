#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
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

// The name in a tool's document, nested or not; empty if there is none.
std::string name_of(const Json& tool) {
  if (!tool.is_object()) return "";
  const Json& at   = tool.contains("function") ? tool.at("function") : tool;
  const Json found = at.is_object() ? at.value("name", Json()) : Json();
  return found.is_string() ? found.string() : "";
}

}  // namespace

HostedTools::Server::Server(std::string run, std::chrono::milliseconds patience, std::size_t calls)
    : command(std::move(run)),
      timeout(patience),
      process(std::make_shared<McpServer>(command, timeout)),
      documents(process->tools()),
      executor(
          [this](const td::ToolCall& one, const std::stop_token& stop) { return call(one, stop); },
          td::ToolSet::from_json(documents), {.threads = calls, .timeout = timeout}) {}

td::ToolResult HostedTools::Server::call(const td::ToolCall& call, const std::stop_token& stop) {
  std::shared_ptr<McpServer> running;
  {
    std::unique_lock lock(mutex);
    if (process->has_ended() && !stop.stop_requested()) {
      if (!is_starting) restart();
      started.wait(lock, stop, [this] { return !is_starting; });
      if (!is_starting && !failure.empty()) return {td::ToolStatus::failed, failure};
    }
    if (stop.stop_requested()) return {td::ToolStatus::cancelled, ""};
    running = process;
  }
  td::ToolResult result = (*running)(call, stop);
  if (result.output.size() <= max_output) return result;
  return {td::ToolStatus::failed, "the result has " + std::to_string(result.output.size()) +
                                      " bytes, more than " + std::to_string(max_output)};
}

void HostedTools::Server::restart() {
  is_starting = true;
  starter     = std::jthread([this](const std::stop_token& quit) {
    std::shared_ptr<McpServer> fresh;
    std::string why;
    try {
      fresh = std::make_shared<McpServer>(command, timeout, quit);
    } catch (const std::exception& error) {
      why = error.what();
    }
    const std::lock_guard lock(mutex);
    if (fresh) process = std::move(fresh);
    failure     = std::move(why);
    is_starting = false;
    started.notify_all();
  });
}

HostedTools::HostedTools(std::span<const std::string> servers, std::chrono::milliseconds timeout,
                         std::size_t calls) {
  std::set<std::string> names;
  for (const std::string& server : servers) {
    const auto refuse = [&](const std::string& what) {
      throw td::Error(td::Errc::invalid_option, "--mcp", server, what);
    };
    const std::size_t end = server.find('=');
    if (end == std::string::npos || end == 0) refuse("must be LABEL=COMMAND");
    const std::string label = server.substr(0, end);
    if (servers_.contains(label)) refuse("has the label of another server");
    try {
      servers_.emplace(label, std::make_unique<Server>(server.substr(end + 1), timeout, calls));
    } catch (const td::Error& error) {
      if (error.code() == td::Errc::invalid_option) throw;
      refuse(error.what());  // of its tools: here, and not at each request
    }
    for (const Json& document : servers_.at(label)->documents) {
      const std::string& name = document.at("name").string();
      if (!names.insert(name).second) refuse("has a tool that another server has: " + name);
    }
  }
}

HostedTools::Expanded HostedTools::expand(Json& body) const {
  Expanded used;
  const auto tools = body.find("tools");
  if (tools == body.end() || !tools->is_array()) return used;
  const auto is_mcp = [](const Json& tool) {
    return tool.is_object() && tool.value("type", Json()) == "mcp";
  };
  if (std::none_of(tools->begin(), tools->end(), is_mcp)) return used;
  used.tools = *tools;
  std::vector<std::string> of_client;
  for (const Json& tool : used.tools) of_client.push_back(name_of(tool));
  std::vector<Json> more;
  for (std::size_t i = 0; i < used.tools.size(); ++i) {
    if (!is_mcp(used.tools[i])) continue;
    const Fields entry(used.tools[i], "tools[" + std::to_string(i) + ']');
    for (const char* key : {"server_url", "connector_id", "authorization", "headers"}) {
      if (entry.find(key) == nullptr) continue;
      entry.fail(key, "is not supported: `serve --mcp LABEL=COMMAND` names the servers",
                 "unsupported_value");
    }
    entry.allow({"type", "server_label", "server_description", "allowed_tools", "require_approval"},
                used.ignored);
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
    const Json& documents = server->second->documents;
    std::vector<std::string> all;
    for (const Json& document : documents) all.push_back(document.at("name").string());
    if (all.empty()) entry.fail("server_label", "names a server without tools");
    bool is_first = true;
    for (const std::string& name : read_allowed(entry, all)) {
      if (!used.labels.emplace(name, label).second) {
        entry.fail("server_label", "repeats a tool of an earlier entry: " + name);
      }
      const auto same = std::find(of_client.begin(), of_client.end(), name);
      if (same != of_client.end()) {
        entry.fail("server_label", "has a tool of the name of tools[" +
                                       std::to_string(same - of_client.begin()) + "]: " + name);
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
    const auto label = tools.find(call.name);
    if (label == tools.end()) return std::shared_future<td::ToolResult>();
    // Beside an equal call of another request and not with it: a tool may have effects.
    td::Execution started = servers_.find(label->second)->second->executor.start_concurrent(call);
    const auto result     = started.result();
    const std::lock_guard lock(running->mutex);
    running->calls.push_back(std::move(started));
    return result;
  };
}

}  // namespace program
