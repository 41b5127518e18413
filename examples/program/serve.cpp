// tooldecode serve: serves a model through OpenAI's chat completions.
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <program/chat_engine.hpp>
#include <program/child_process.hpp>
#include <program/command_line.hpp>
#include <program/commands.hpp>
#include <program/cross_origin.hpp>
#include <program/drafts.hpp>
#include <program/formats.hpp>
#include <program/hosted_tools.hpp>
#include <program/http_server.hpp>
#include <program/models.hpp>
#include <program/reasoning.hpp>
#include <program/reply_traces.hpp>
#include <program/seconds.hpp>
#include <program/server.hpp>
#include <program/trace_file.hpp>
#include <signal.h>
#include <unistd.h>

namespace program {
namespace {

namespace td = tooldecode;

struct ServeOptions {
  ModelOptions model{.context = 16'384};
  std::string format;
  HttpOptions http;
  ServiceOptions service;
  DraftOptions drafts;
  std::vector<std::string> trace;
  std::vector<std::string> mcp;
  double mcp_timeout = 30;
};

// Ends the process at a signal that comes while the server starts, with the status that a shell has
// for it.
class EndsAtSignal {
 public:
  explicit EndsAtSignal(const sigset_t& signals)
      : watcher_([signals](const std::stop_token& stop) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any wake;
          sigset_t pending;
          do {
            sigpending(&pending);
            for (const int signal : {SIGINT, SIGTERM}) {
              if (sigismember(&signals, signal) != 0 && sigismember(&pending, signal) != 0) {
                ChildProcess::kill_every_one();
                _exit(128 + signal);
              }
            }
          } while (!wake.wait_for(lock, stop, std::chrono::milliseconds(50),
                                  [&] { return stop.stop_requested(); }));
        }) {}

 private:
  std::jthread watcher_;
};

// For a GGUF file's model: sequences for the prefix cache, and as many as llama.cpp has.
constexpr std::size_t prefix_sequences = 96, most_sequences = 256;

// Limits the arenas: each thread would have one, and the allocator never returns its free memory.
void bound_arenas() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);
#endif
}

// Texts can be continued without the control tokens of chats, so that the server starts.
void warn_of_chats(const Assistant& assistant) {
  std::string names;
  for (const std::string_view name : assistant.missing_controls()) {
    (names += names.empty() ? "" : ", ") += name;
  }
  if (names.empty()) return;
  std::cerr
      << "tooldecode: the tokenizer in " << assistant.place.string() << " lacks the control tokens "
      << names
      << ": chats whose prompts need them are refused, and /v1/completions is answered; serve a "
         "GGUF file of the model, which has its chat template\n";
}

void run_serve(const ServeOptions& options) {
  bound_arenas();
  // Before any thread is made, so that the signals go to the thread that waits for them.
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::optional<EndsAtSignal> starting(std::in_place, signals);
  const bool is_local = options.http.host == "localhost" || options.http.host == "::1" ||
                        options.http.host.starts_with("127.");
  if (!is_local && options.http.api_key.empty()) {
    std::cerr << "tooldecode: anyone who reaches " << options.http.host
              << " may use this server: it has no API key\n";
  }
  check_format(options.format);
  check_reasoning(options.service.reasoning);
  const CrossOrigin checked(options.http.origins);  // before a model is loaded
  const HostedTools hosted(options.mcp, milliseconds(options.mcp_timeout),
                           options.service.max_batch);
  ModelOptions model = options.model;
  // Each leaf of a draft needs one until its pass is taken.
  model.sequences =
      options.drafts.is_on() ? most_sequences : options.service.max_batch + prefix_sequences;
  const auto assistant = load_target(model, options.drafts);
  warn_of_chats(*assistant);
  const Format& format    = assistant->format(options.format);
  const Drafting drafting = load_drafting(options.drafts, model, *assistant);
  with_engine_maker(*assistant, drafting, [&](const EngineMaker& make_engine) {
    ServiceOptions given = options.service;
    given.costs          = assistant->measure_costs();
    ReplyTraces traces(options.trace, *assistant, model.name);
    ChatService service(*assistant, format, given, make_engine, traces.is_on() ? &traces : nullptr,
                        &hosted);
    HttpServer server(service, options.http, options.model.name);
    starting.reset();
    server.run();
  });
}

}  // namespace

void add_serve(CommandLine& line) {
  auto options = std::make_shared<ServeOptions>();
  Command sub  = line.command("serve", "Serve a model over OpenAI's HTTP API");
  add_model_options(sub, options->model);
  sub.option("--format", options->format, "call format: " + format_values() + "; default: auto");
  sub.option("--reasoning", options->service.reasoning,
             "before an answer: no, block where the model may reason, open where the prompt has "
             "opened a block, or auto: what the model's chat template and each prompt say")
      .shows_default();
  add_whitespace_option(sub, options->service.whitespace);
  sub.option("--host", options->http.host, "address to listen at").shows_default();
  sub.option("--port", options->http.port, "port to listen at; 0 picks one")
      .shows_default()
      .within(0, 65535);
  sub.option("--api-key", options->http.api_key, "key that clients must send")
      .environment("TOOLDECODE_API_KEY");
  sub.option("--cors", options->http.origins,
             "origin whose pages may use the server from a browser, such as https://example.org; "
             "repeat it for several; * for all")
      .one_at_a_time();
  sub.option("--timeout", options->http.timeout, "most seconds for one request")
      .shows_default()
      .within(0.0, 86400.0);
  sub.option("--read-timeout", options->http.read_timeout,
             "most seconds for a request to arrive whole")
      .shows_default()
      .within(0.001, 86400.0);
  sub.option("--drain-seconds", options->http.drain_seconds,
             "most seconds for answers in progress when the server stops")
      .shows_default()
      .within(0.0, 86400.0);
  sub.option("--max-batch", options->service.max_batch, "most requests decoded at once")
      .shows_default()
      .within(1, 1024);
  sub.option("--max-waiting", options->service.max_waiting,
             "most requests that wait for a place; others get status 429")
      .shows_default()
      .within(0, 65536);
  sub.option("--max-shared", options->service.max_shared,
             "most tokens of a pass that several clients or requests share; "
             "0: as many as take hardly longer than one, at most 6, or no limit if 64 do")
      .shows_default()
      .within(0, 65536);
  sub.option("--max-body", options->http.body_bytes, "most bytes of a request's body")
      .shows_default()
      .within(1, 1 << 30);
  sub.option("--connections", options->http.connections, "most connections at once")
      .shows_default()
      .within(1, 4096);
  sub.option("--prefix-cache", options->service.prefix_cache,
             "tokens of earlier requests that are kept")
      .shows_default();
  sub.option("--cache-bytes", options->service.cache_bytes, "most bytes of tool outputs kept")
      .shows_default();
  sub.option("--keep-alive", options->service.keep_alive,
             "seconds that a tool's output is kept, unless the client says")
      .shows_default()
      .within(0.0, 86400.0);
  sub.option("--early-outputs", options->service.early.entries,
             "most outputs kept for responses that no request has used yet")
      .shows_default()
      .within(0, 1 << 20);
  sub.option("--early-bytes", options->service.early.bytes, "most bytes of them").shows_default();
  sub.option("--early-seconds", options->service.early.seconds, "how long they are kept")
      .shows_default()
      .within(0.0, 86400.0);
  sub.option(
         "--mcp", options->mcp,
         "LABEL=COMMAND: a server of the Model Context Protocol over standard input and output; requests "
         "have its tools by {\"type\": \"mcp\", \"server_label\": LABEL} among their tools, and the calls "
         "of these run here; repeat it for several")
      .one_at_a_time();
  sub.option("--mcp-timeout", options->mcp_timeout,
             "most seconds of a call of their tools, and of their start")
      .shows_default()
      .within(0.001, 86400.0);
  add_draft_options(sub, options->drafts);
  add_trace_option(sub, options->trace,
                   "after each response how the tokens of the latest " +
                       std::to_string(ReplyTraces::kept) + " came");
  sub.runs([options] { run_serve(*options); });
}

}  // namespace program
