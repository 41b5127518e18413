// tooldecode agent: a client that runs tools before the model has finished its call.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/agent_report.hpp>
#include <program/agent_trace.hpp>
#include <program/assistant.hpp>
#include <program/chat_client.hpp>
#include <program/command_line.hpp>
#include <program/command_tool.hpp>
#include <program/commands.hpp>
#include <program/engine_cluster.hpp>
#include <program/files.hpp>
#include <program/json.hpp>
#include <program/mcp_server.hpp>
#include <program/model_speculator.hpp>
#include <program/models.hpp>
#include <program/readings.hpp>
#include <program/seconds.hpp>
#include <program/trace_file.hpp>

namespace program {
namespace {

namespace td = tooldecode;

struct AgentOptions {
  std::vector<std::string> urls{"http://127.0.0.1:8080/v1"};
  std::string model = "tiny";
  std::string api_key;
  std::string tools;
  std::vector<std::string> mcp;
  std::string command;
  double latency = 0.5;
  std::vector<std::string> allowed;
  std::vector<std::string> speculators{"embedded"};
  bool gate         = false;
  bool engine_cache = false;
  double tool_wait  = 0;
  std::string session;
  std::size_t retries     = RetryOptions{}.retries;
  double connect_timeout  = 5;
  double silence_timeout  = 600;
  std::size_t turns       = 4;
  double timeout          = 30;
  float temperature       = 0;
  float guess_temperature = 0.8F;
  std::int64_t seed       = 1;
  std::size_t max         = 128;
  bool json               = false;
  std::string question    = "Please tell me the weather in Oslo.";
  std::vector<std::string> trace;
};

std::string hexadecimal(std::uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

class AgentTools {
 public:
  explicit AgentTools(const AgentOptions& options) : options_(options) {
    const std::chrono::milliseconds patience = milliseconds(options.timeout);
    Json documents                           = Json::array();
    if (options.mcp.empty() || !options.tools.empty()) {
      const std::string path =
          options.tools.empty() ? example_data("tools.json").string() : options.tools;
      tools_ = td::ToolSet::parse(read_file(path));
      for (const td::Tool& tool : tools_) documents.push_back(td::parse_json_value(tool.document));
    }
    for (const std::string& command : options.mcp) {
      const auto server = std::make_shared<McpServer>(command, patience);
      for (const Json& document : server->tools()) {
        if (document.is_object() && document.value("name", Json()).is_string()) {
          servers_.emplace(document["name"].string(), server);
        }
        documents.push_back(document);
      }
    }
    if (!options.mcp.empty()) tools_ = td::ToolSet::from_json(std::move(documents));
  }

  [[nodiscard]] const td::ToolSet& tools() const noexcept { return tools_; }

  [[nodiscard]] td::ToolResult operator()(const td::ToolCall& call,
                                          const std::stop_token& stop) const {
    const auto server = servers_.find(call.name);
    if (server != servers_.end()) return (*server->second)(call, stop);
    if (!options_.command.empty()) return CommandTool{options_.command}(call, stop);
    const auto end = std::chrono::steady_clock::now() + td::Seconds(options_.latency);
    while (std::chrono::steady_clock::now() < end) {
      if (stop.stop_requested()) return {td::ToolStatus::cancelled, "the tool was stopped"};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {td::ToolStatus::ok, call.name + " is done"};
  }

 private:
  const AgentOptions& options_;
  td::ToolSet tools_;
  std::map<std::string, std::shared_ptr<McpServer>> servers_;  // by tool name
};

// Prefixes a speculator's errors with its name.
td::ClientModel<Json> named(std::string name, td::ClientModel<Json> guess) {
  return
      [name = std::move(name), guess = std::move(guess)](const Json& body, std::stop_token stop) {
        try {
          return guess(body, std::move(stop));
        } catch (const std::exception& error) {
          throw std::runtime_error(name + ": " + error.what());
        }
      };
}

// The scheme, host and port of a URL.
std::string origin_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  return url.substr(0, url.find('/', scheme == url.npos ? 0 : scheme + 3));
}

// The first speculator of a model guesses with the main model's settings. More speculators with the
// same model would give the same guess, so they sample with different seeds.
std::vector<td::ClientModel<Json>> make_speculators(const AgentOptions& options,
                                                    const td::ToolSet& tools,
                                                    const std::string& key) {
  std::vector<td::ClientModel<Json>> speculators;
  std::map<std::string, std::size_t> known;
  for (const std::string& name : options.speculators) {
    if (name == "none") continue;
    const bool is_first = known[name]++ == 0;
    const float temperature =
        is_first ? options.temperature : std::max(options.temperature, options.guess_temperature);
    const std::int64_t seed = options.seed + static_cast<std::int64_t>(speculators.size());
    const std::size_t split = name.find('=');
    if (split == name.npos) {
      ModelOptions model;
      if (name != "embedded") model.name = name;
      const GuessOptions guess{.temperature = temperature,
                               .seed        = static_cast<std::uint64_t>(seed)};
      const auto own = std::make_shared<ModelSpeculator>(load_assistant(model), tools, guess);
      speculators.push_back(named(name, [own](const Json& body, const std::stop_token& stop) {
        return (*own)(body, stop);
      }));
      continue;
    }
    const std::string url = name.substr(split + 1);
    // The key is that of the main model's server, and of no other.
    const bool is_same_server = std::ranges::any_of(
        options.urls, [&](const std::string& main) { return origin_of(main) == origin_of(url); });
    const auto client = std::make_shared<const ChatClient>(url, name.substr(0, split),
                                                           is_same_server ? key : std::string());
    speculators.push_back(
        named(name, [client, temperature, seed](const Json& body, std::stop_token stop) {
          Json request           = body;
          request["temperature"] = temperature;
          request["seed"]        = seed;
          request.erase("response_id");
          request.erase("tool_wait");
          ChatReply reply = client->complete(std::move(request), std::move(stop));
          return td::Reply{std::move(reply.text), std::move(reply.calls)};
        }));
  }
  return speculators;
}

void run_agent(const AgentOptions& options) {
  std::string key = options.api_key;
  if (const char* variable = std::getenv("OPENAI_API_KEY"); key.empty() && variable != nullptr) {
    key = variable;
  }
  std::random_device entropy;
  const std::string session =
      options.session.empty() ? "agent-" + hexadecimal(std::uint64_t{entropy()} << 32 | entropy())
                              : options.session;
  std::vector<ChatClient> clients;
  for (const std::string& url : options.urls) {
    clients.emplace_back(
        url, options.model, key,
        Patience{milliseconds(options.connect_timeout), milliseconds(options.silence_timeout)});
  }
  EngineCluster engines(std::move(clients), session, {.retries = options.retries});
  AgentTrace trace(
      options.trace,
      {{"model", options.model}, {"urls", options.urls}, {"question", options.question}});
  const AgentTools runtime(options);
  const td::ToolSet& tools = runtime.tools();
  td::ToolExecutor executor{
      trace.tools(std::cref(runtime)), tools, {.timeout = milliseconds(options.timeout)}};
  td::SpeculationGate gate;
  td::ClientOptions client{
      .policy = td::SpeculationPolicy{tools, td::PolicyOptions{.allowed = options.allowed}}};
  if (options.gate) {
    client.expects_gain = [&gate](std::string_view tool) { return gate.expects_gain(tool); };
    client.observe      = [&gate](std::string_view tool, const td::Observation& seen) {
      gate.observe(tool, seen);
    };
  }
  ChatReply last;
  td::ClientModels<Json> models{.speculators =
                                    trace.speculators(make_speculators(options, tools, key))};
  if (options.engine_cache) {
    models.main = [&](const Json& body, const std::stop_token& stop,
                      const td::EngineCallbacks<Json>& residence) {
      const StreamListener listener{
          .on_id =
              [&, begun = false](const std::string&) mutable {
                if (std::exchange(begun, true)) residence.on_restart();
              },
          .on_cached =
              [&](const Json& messages, const std::vector<td::ToolCall>& calls) {
                Json next = body;
                for (const Json& message : messages) next["messages"].push_back(message);
                residence.on_continue(std::move(next), calls);
              },
          .on_pending = residence.on_wait};
      last = trace.model([&] { return engines.follow(body, listener, stop); });
      return td::Reply{last.text, last.calls};
    };
    models.submit = [&](const Json& body, const td::ToolCall& call, const td::ToolResult& result,
                        const std::stop_token& stop) {
      constexpr double keep_alive = 60;
      return engines.cache_output(body.at("response_id").string(), call, output_text(result),
                                  keep_alive, stop);
    };
  } else {
    models.main = [&](const Json& body, const std::stop_token& stop) {
      last = trace.model([&] { return engines.complete(body, stop); });
      return td::Reply{last.text, last.calls};
    };
  }
  AgentReport report(models.speculators.size());
  td::ClientSpeculator<Json> speculate{std::move(models), executor, client};

  Json functions = Json::array();
  for (const td::Tool& tool : tools) {
    Json function{{"name", tool.name},
                  {"description", tool.description},
                  {"parameters", td::documented_parameters(tool)}};
    if (!tool.strict) function["strict"] = false;
    functions.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  Json body{{"messages", Json::array({{{"role", "user"}, {"content", options.question}}})},
            {"tools", functions},
            {"temperature", options.temperature},
            {"seed", options.seed},
            {"max_tokens", options.max}};
  for (std::size_t turn = 0; turn < options.turns; ++turn) {
    if (options.engine_cache) body["response_id"] = session + '.' + std::to_string(turn);
    if (options.engine_cache && options.tool_wait > 0) body["tool_wait"] = options.tool_wait;
    const td::ClientTurn done = speculate(body);
    report.add(done, last.message);
    trace.add(done);
    if (!options.json) report.print_turn(std::cout);
    for (const Json& message : last.messages) body["messages"].push_back(message);
    if (done.reply.calls.empty()) break;
    for (std::size_t i = 0; i < done.results.size(); ++i) {
      body["messages"].push_back({{"role", "tool"},
                                  {"tool_call_id", last.message["tool_calls"][i]["id"]},
                                  {"content", output_text(done.results[i])}});
    }
  }
  const Json whole = report.json(speculate.submissions(), engines.counts(), body["messages"]);
  trace.write(whole);
  if (options.json) {
    std::cout << whole.text({.indent = 2}) << '\n';
  } else {
    report.print_summary(std::cout, speculate.submissions(), engines.counts());
    std::cout << readings_text(tools);
  }
}

}  // namespace

void add_agent(CommandLine& line) {
  auto options = std::make_shared<AgentOptions>();
  Command sub  = line.command(
      "agent",
      "Ask an OpenAI-compatible server, such as `tooldecode serve`, and run early the tools that "
       "it is going to call; ends with an account of what ran early and was used");
  sub.option("--base-url,--url", options->urls,
             "of the server, with the version: http://HOST:PORT/v1; given several times, servers "
             "of one model, of which another is asked where one fails")
      .one_at_a_time()
      .shows_default();
  sub.option("--model", options->model, "the server's model").shows_default();
  sub.option(
      "--api-key", options->api_key,
      "of the servers of --base-url, or in the variable OPENAI_API_KEY; speculators elsewhere get "
      "none");
  sub.option(
      "--tools", options->tools,
      "tool documents: JSON of OpenAI, Anthropic, MCP, Bedrock, Gemini, BFCL or API-Bank; none: "
      "those of the example, unless there is --mcp");
  sub.option("--mcp", options->mcp,
             "a shell command that is a server of the Model Context Protocol over its "
             "standard input and output, whose tools are tools too; may be given several times")
      .one_at_a_time();
  sub.option("--run", options->command,
             "a shell command that runs one call: JSON with name and arguments on its standard "
             "input, the result on its standard output; none: a tool that only sleeps");
  sub.option("--latency", options->latency, "seconds that the tool that only sleeps takes")
      .within(0.0, 3600.0)
      .excludes("--run")
      .shows_default();
  sub.option("--allow", options->allowed,
             "a tool that may run early, besides those whose documents say readOnlyHint; again "
             "for each")
      .one_at_a_time();
  sub.option("--speculator", options->speculators,
             "who guesses the next call: embedded, a model as for call, MODEL=URL, again for "
             "each, or none")
      .one_at_a_time()
      .shows_default();
  sub.option("--guess-temperature", options->guess_temperature,
             "of the second speculator of a model and further ones; the first has the main "
             "model's, and each has its own seed")
      .within(0.0, 2.0)
      .shows_default();
  sub.flag("--gate", options->gate, "guess only where that has been shown to pay");
  sub.flag("--engine-cache", options->engine_cache,
           "tell the server's tool cache what guessed calls returned");
  sub.option("--tool-wait", options->tool_wait,
             "seconds that the server keeps a call's place for outputs that it lacks; 0: it "
             "replies with the call")
      .within(0.0, 3600.0)
      .needs("--engine-cache")
      .shows_default();
  sub.option("--session", options->session,
             "a name that keeps the requests at one of several servers; none: a random one");
  sub.option("--retries", options->retries, "of a request whose server fails").shows_default();
  sub.option("--connect-timeout", options->connect_timeout, "seconds for a connection")
      .within(0.001, 86400.0)
      .shows_default();
  sub.option("--silence-timeout", options->silence_timeout,
             "seconds in which a server that answers says nothing")
      .within(0.001, 86400.0)
      .shows_default();
  sub.option("--turns", options->turns, "most answers of the model").shows_default();
  sub.option("--timeout", options->timeout, "seconds for one tool call")
      .within(0.001, 86400.0)
      .shows_default();
  sub.option("--temperature", options->temperature, "0 is greedy").shows_default();
  sub.option("--seed", options->seed, "of the sampling noise").shows_default();
  sub.option("--max-tokens", options->max, "of an answer").shows_default();
  sub.flag("--json", options->json, "print one JSON object and nothing else");
  add_trace_option(sub, options->trace, "what ran when, and what of it was used,");
  sub.option("question", options->question, "what to ask").shows_default();
  sub.runs([options] { run_agent(*options); });
}

}  // namespace program
