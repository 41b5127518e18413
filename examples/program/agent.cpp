// tooldecode agent: a client that runs tools before the model has finished asking for them.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/execute/tool_executor.hpp>

#include <program/answer.hpp>
#include <program/chat_client.hpp>
#include <program/command_tool.hpp>
#include <program/commands.hpp>
#include <program/files.hpp>
#include <program/openai.hpp>

namespace program {
namespace {

namespace td = tooldecode;

struct AgentOptions {
  std::string url   = "http://127.0.0.1:8080/v1";
  std::string model = "tiny";
  std::string api_key;
  std::string tools = example_data("tools.json").string();
  std::string command;
  double latency = 0.5;
  std::vector<std::string> allowed;
  std::vector<std::string> speculators{"embedded"};
  bool gate            = false;
  bool engine_cache    = false;
  std::size_t turns    = 4;
  double timeout       = 30;
  float temperature    = 0;
  std::int64_t seed    = 1;
  std::size_t most     = 128;
  bool json            = false;
  std::string question = "Please tell me the weather in Oslo.";
};

std::string hexadecimal(std::uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

// The embedded model as one that guesses: it reads the request that the main model gets.
class EmbeddedSpeculator {
 public:
  td::Reply operator()(const Json& body, const std::stop_token& stop) const {
    const Assistant& model    = assistant();
    const Format& format      = format_named("python");
    const ChatRequest chat    = parse_chat(body, format, model.tokenizer.vocabulary().size());
    const td::ToolCallFSM fsm = format.constrain(model.masks, chat.tools, chat.choice);
    const auto prompt = make_prompt(model.tokenizer, chat.tools, format.name, chat.messages);
    if (stop.stop_requested()) return {};
    const td::Decoder decode{model.model, fsm};
    const std::string text = model.tokenizer.decode(decode(prompt, {.max_tokens = 128}).tokens);
    return {text, fsm.parse(text)};
  }

  static const Assistant& assistant() {
    static const Assistant loaded(example_data("tiny"));
    return loaded;
  }
};

// The tools, and where the engine is told of their outputs before it asks.
class AgentTools {
 public:
  AgentTools(const AgentOptions& options, const ChatClient& main)
      : options_(options), main_(main) {}

  // The response that outputs are announced for from now on.
  void announce_for(std::string response_id) {
    const std::lock_guard lock(mutex_);
    response_id_ = std::move(response_id);
  }

  td::ToolResult operator()(const td::ToolCall& call, const std::stop_token& stop) {
    const td::ToolResult result = run(call, stop);
    std::string id;
    {
      const std::lock_guard lock(mutex_);
      id = response_id_;
    }
    if (!id.empty() && result.status == td::ToolStatus::ok) {
      try {
        main_.cache_output(id, call, result.output, 60);
      } catch (const std::exception&) {
        // The engine asks for what it has not been told.
      }
    }
    return result;
  }

 private:
  [[nodiscard]] td::ToolResult run(const td::ToolCall& call, const std::stop_token& stop) const {
    if (!options_.command.empty()) return CommandTool{options_.command}(call, stop);
    const auto end = std::chrono::steady_clock::now() + td::Seconds(options_.latency);
    while (std::chrono::steady_clock::now() < end) {
      if (stop.stop_requested()) return {td::ToolStatus::cancelled, "the tool was stopped"};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {td::ToolStatus::ok, call.name + " is done"};
  }

  const AgentOptions& options_;
  const ChatClient& main_;
  std::mutex mutex_;
  std::string response_id_;
};

std::vector<td::Generator<Json>> make_speculators(const AgentOptions& options) {
  std::vector<td::Generator<Json>> speculators;
  for (const std::string& name : options.speculators) {
    if (name == "none") continue;
    if (name == "embedded") {
      static_cast<void>(EmbeddedSpeculator::assistant());  // loaded before the first turn
      speculators.emplace_back(EmbeddedSpeculator{});
      continue;
    }
    const std::size_t split = name.find('=');  // MODEL=URL
    if (split == name.npos) {
      throw td::Error(td::Errc::invalid_option, name,
                      "a speculator is embedded, none, or MODEL=URL");
    }
    const auto client = std::make_shared<const ChatClient>(name.substr(split + 1),
                                                           name.substr(0, split), options.api_key);
    speculators.emplace_back([client](const Json& body, std::stop_token stop) {
      ChatReply reply = client->complete(body, std::move(stop));
      return td::Reply{std::move(reply.text), std::move(reply.calls)};
    });
  }
  return speculators;
}

std::string seconds(td::Seconds time) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3) << time.count() << " s";
  return text.str();
}

Json turn_json(const td::ClientTurn& turn, const Json& message) {
  Json results = Json::array();
  for (const td::ToolResult& result : turn.results) {
    results.push_back({{"status", name(result.status)}, {"output", result.output}});
  }
  return {{"message", message},
          {"results", results},
          {"generation_seconds", turn.generation.count()},
          {"tools_seconds", turn.tools.count()},
          {"proposed", turn.counts.proposed},
          {"started", turn.counts.started},
          {"hits", turn.counts.hits},
          {"wasted", turn.counts.wasted},
          {"cancelled", turn.counts.cancelled},
          {"failures", turn.counts.failures}};
}

void print_turn(std::size_t number, const td::ClientTurn& turn, const Json& message) {
  std::cout << "Turn " << number << ", the model took " << seconds(turn.generation) << '\n';
  for (const Json& cached : message.value("cached_tool_calls", Json::array())) {
    const Json& function = cached.at("function");
    std::cout << "  call    " << function.at("name").get<std::string>() << ' '
              << function.at("arguments").get<std::string>() << "\n  result  "
              << cached.at("output").get<std::string>() << "  (known to the engine)\n";
  }
  if (!turn.reply.text.empty()) std::cout << "  text    " << turn.reply.text << '\n';
  for (std::size_t i = 0; i < turn.reply.calls.size(); ++i) {
    std::cout << "  call    " << turn.reply.calls[i].name << ' '
              << turn.reply.calls[i].arguments.dump() << "\n  result  "
              << name(turn.results[i].status) << ": " << turn.results[i].output << '\n';
  }
  if (!turn.reply.calls.empty()) {
    std::cout << "  tools   " << seconds(turn.tools) << " after the call; " << turn.counts.started
              << " started early, " << turn.counts.hits << " of use, " << turn.counts.wasted
              << " in vain\n";
  }
}

void run_agent(const AgentOptions& options) {
  const std::string documents = read_file(options.tools);
  const td::ToolSet tools     = td::ToolSet::parse(documents);
  std::string key             = options.api_key;
  if (const char* variable = std::getenv("OPENAI_API_KEY"); key.empty() && variable != nullptr) {
    key = variable;
  }
  const ChatClient main(options.url, options.model, key);
  AgentTools runtime(options, main);
  td::ToolExecutor executor{
      std::ref(runtime),
      tools,
      {.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options.timeout))}};
  td::SpeculationGate gate;
  td::ClientOptions client{
      .policy = td::SpeculationPolicy{tools, td::PolicyOptions{.allowed = options.allowed}}};
  if (options.gate) {
    client.expects_gain = [&gate](std::string_view tool) { return gate.expects_gain(tool); };
    client.observe      = [&gate](std::string_view tool, const td::Observation& seen) {
      gate.observe(tool, seen);
    };
  }
  Json message;
  const auto ask = [&](const Json& body, std::stop_token stop) {
    ChatReply reply = main.complete(body, std::move(stop));
    message         = std::move(reply.message);
    return td::Reply{std::move(reply.text), std::move(reply.calls)};
  };
  td::ClientSpeculator<Json> speculate{{ask, make_speculators(options)}, executor, client};

  Json functions = Json::array();  // in OpenAI's form, whatever the documents have
  for (const td::Tool& tool : tools) {
    functions.push_back({{"type", "function"},
                         {"function",
                          {{"name", tool.name},
                           {"description", tool.description},
                           {"parameters", tool.parameters}}}});
  }
  Json body{{"messages", Json::array({{{"role", "user"}, {"content", options.question}}})},
            {"tools", functions},
            {"temperature", options.temperature},
            {"seed", options.seed},
            {"max_tokens", options.most}};
  std::random_device entropy;
  const std::string session = "agent-" + hexadecimal(std::uint64_t{entropy()} << 32 | entropy());
  Json report               = Json::array();
  td::Seconds total{};
  for (std::size_t turn = 0; turn < options.turns; ++turn) {
    if (options.engine_cache) {
      body["response_id"] = session + '.' + std::to_string(turn);
      runtime.announce_for(body["response_id"]);
    }
    const td::ClientTurn done = speculate(body);
    total += done.generation + done.tools;
    report.push_back(turn_json(done, message));
    if (!options.json) print_turn(turn + 1, done, message);
    body["messages"].push_back(message);
    if (done.reply.calls.empty()) break;
    for (std::size_t i = 0; i < done.results.size(); ++i) {
      const td::ToolResult& result = done.results[i];
      const std::string output =
          result.status == td::ToolStatus::ok
              ? result.output
              : "error: " + std::string(name(result.status)) + ": " + result.output;
      body["messages"].push_back({{"role", "tool"},
                                  {"tool_call_id", message["tool_calls"][i]["id"]},
                                  {"content", output}});
    }
  }
  if (options.json) {
    std::cout << Json{{"turns", report}, {"seconds", total.count()}}.dump(
                     2, ' ', false, Json::error_handler_t::replace)
              << '\n';
  } else {
    std::cout << report.size() << " turns in " << seconds(total) << '\n';
  }
}

}  // namespace

void add_agent(CLI::App& app) {
  auto options  = std::make_shared<AgentOptions>();
  CLI::App* sub = app.add_subcommand(
      "agent", "Ask an OpenAI-compatible server, and run the tools that it will call early");
  sub->add_option("--url", options->url, "of the server, with the version: http://HOST:PORT/v1")
      ->capture_default_str();
  sub->add_option("--model", options->model, "the server's model")->capture_default_str();
  sub->add_option("--api-key", options->api_key, "or in the variable OPENAI_API_KEY");
  sub->add_option("--tools", options->tools, "tool documents: OpenAI, MCP, BFCL or API-Bank JSON")
      ->capture_default_str();
  sub->add_option(
      "--run", options->command,
      "a shell command that runs one call: JSON with name and arguments on its standard "
      "input, the result on its standard output; none: a tool that only sleeps");
  sub->add_option("--latency", options->latency, "seconds that the tool that only sleeps takes")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  sub->add_option("--allow", options->allowed,
                  "tools that may run early, besides those whose documents say readOnlyHint");
  sub->add_option("--speculator", options->speculators,
                  "who guesses the next call: embedded, MODEL=URL, any number of them, or none")
      ->capture_default_str();
  sub->add_flag("--gate", options->gate, "guess only where that has been shown to pay");
  sub->add_flag("--engine-cache", options->engine_cache,
                "tell the server's tool cache what guessed calls returned");
  sub->add_option("--turns", options->turns, "most answers of the model")->capture_default_str();
  sub->add_option("--timeout", options->timeout, "seconds for one tool call")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  sub->add_option("--temperature", options->temperature, "0 is greedy")->capture_default_str();
  sub->add_option("--seed", options->seed, "of the sampling noise")->capture_default_str();
  sub->add_option("--max-tokens", options->most, "of an answer")->capture_default_str();
  sub->add_flag("--json", options->json, "print one JSON object and nothing else");
  sub->add_option("question", options->question, "what to ask")->capture_default_str();
  sub->callback([options] { run_agent(*options); });
}

}  // namespace program
