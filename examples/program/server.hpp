/// \file
/// ChatService: chat requests answered by one engine over a model, without the HTTP.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <iomanip>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/execute/tool_cache.hpp>
#include <tooldecode/tools/call_key.hpp>

#include <program/assistant.hpp>
#include <program/chat_engine.hpp>
#include <program/early_outputs.hpp>
#include <program/fair_places.hpp>
#include <program/metrics.hpp>
#include <program/openai.hpp>
#include <program/reply.hpp>
#include <program/reply_traces.hpp>

namespace program {

/// What reaches a request's handler from the engine's thread.
class Exchange {
 public:
  /// Calls that the client must run while the engine waits.
  using Calls = std::vector<tooldecode::ToolCall>;
  /// Of one of the request's choices: a token, calls, a turn that was gone on from, or the end.
  struct Event {
    std::size_t choice = 0;
    std::variant<tooldecode::TokenEvent, Calls, tooldecode::EngineTurn, tooldecode::EngineReply>
        what;
  };

  void put(Event event);
  /// The next event; nothing where none came in this time.
  [[nodiscard]] std::optional<Event> take(std::chrono::milliseconds time);

 private:
  std::mutex mutex_;
  std::condition_variable is_there_;
  std::deque<Event> events_;
};

/// Constraints by their tools and choice: an agent asks with the same ones again and again, and a
/// constraint that has been used knows its states and masks. Those of one memory alone are kept, so
/// that all of them together take what the index's budget says.
class ConstraintCache {
 public:
  /// The constraint of a request; ApiError for documents that give none, or where it is cancelled.
  ///
  /// \param whitespace  see ChoiceOptions; the same at each call
  [[nodiscard]] tooldecode::ToolCallFSM get(const Assistant& assistant, const Format& format,
                                            const ChatRequest& chat, std::size_t whitespace);
  /// Ends what is being built, and builds nothing any more.
  void cancel() noexcept { cancelled_ = true; }
  [[nodiscard]] const std::atomic<bool>& cancelled() const noexcept { return cancelled_; }

 private:
  static constexpr std::size_t capacity = 32;

  static std::string key_of(const ChatRequest& chat);

  [[noreturn]] static void refuse(const ChatRequest& chat, const tooldecode::Error& error);

  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::list<std::pair<std::string, tooldecode::ToolCallFSM>> entries_;
};

/// Settings of a ChatService.
struct ServiceOptions {
  std::size_t max_batch    = 32;      ///< requests decoded at once
  std::size_t max_waiting  = 96;      ///< requests that wait for a place
  std::size_t prefix_cache = 16'384;  ///< tokens kept of earlier requests
  std::size_t cache_bytes  = std::size_t{64} << 20;
  double keep_alive        = 300;  ///< seconds that a tool's output is kept, unless told
  std::size_t whitespace   = 0;    ///< see ChoiceOptions
  EarlyOptions early;              ///< of outputs for responses that are not known yet
  /// Of the model's passes: no more of a draft is verified than pays.
  tooldecode::TreeCosts costs = tooldecode::TreeCosts::flat();
};

/// A request that the engine works on; whoever stops to listen before its reply cancels it.
struct ChatSession {
  std::string id{};    ///< of the response
  std::string unique;  ///< of this request alone
  AnswerText text;     ///< as each turn begins
  std::size_t prompt_tokens = 0;
  std::shared_ptr<Exchange> events;
  std::vector<std::function<void()>> cancel{};           ///< each of its choices
  std::shared_ptr<FairPlaces::Ticket> places = nullptr;  ///< in the batch
};

/// Answers chat requests, several at once, and keeps the tool outputs that clients announce.
///
/// A client may name its response, and name several the same, one after the other: what it puts
/// into the cache under that name serves all of them. What it announces before the first of them is
/// kept until then, within bounds.
class ChatService {
 public:
  /// \param make_engine  what the engine refers to outlives the service
  /// \param traces       told of replies, or null; outlives the service
  ChatService(const Assistant& assistant, const Format& format, ServiceOptions options,
              const EngineMaker& make_engine, ReplyTraces* traces = nullptr);

  [[nodiscard]] const Assistant& assistant() const noexcept { return *assistant_; }
  [[nodiscard]] const Format& format() const noexcept { return *format_; }

  /// Submits a request once it is its client's turn; ApiError where it cannot be answered.
  /// \param client  who shares places with others that ask
  /// \param watch   called while the request waits for a place; throws where nobody waits any more
  [[nodiscard]] ChatSession start(const ChatRequest& chat, const std::string& client,
                                  const std::function<void()>& watch);

  /// Whether requests wait for places.
  [[nodiscard]] bool is_busy() const { return places_.waiting() > 0; }
  /// Ends what is being built for requests that are not submitted yet.
  void cancel_building() noexcept { constraints_.cancel(); }

  /// Keeps what calls of a response would return, all of them or, with an ApiError, none; how many
  /// entries that made.
  std::size_t cache(const std::string& response_id, std::vector<CachedOutput> outputs);

  void write(MetricsText& page);

 private:
  using Clock = std::chrono::steady_clock;

  template <class Value>
  void write_early(Value value) {
    const std::lock_guard lock(mutex_);
    value("early_outputs", "Outputs that wait for their request.", early_.size());
    value("early_output_bytes", "Bytes of outputs that wait for their request.", early_.bytes());
    value("early_outputs_dropped_total",
          "Outputs that waited for their request in vain, or were not of its tools.",
          early_.dropped() + misnamed_);
  }

  // What is known of a response by its id.
  struct Response {
    tooldecode::ToolSet tools;
    std::size_t bytes  = 0;  // of the tools' documents
    bool streams_calls = false;
    bool active        = true;
  };
  struct Reply {
    std::string id;
    std::size_t choice;
    std::shared_ptr<Exchange> events;
    std::shared_ptr<FairPlaces::Ticket> places;
    tooldecode::EngineReply reply;
  };

  static Clock::duration duration(double seconds);

  // An answer that is a call or a value is of no use when it is cut; a text is.
  static bool must_end(const ChatRequest& chat);

  void submit(const ChatRequest& chat, const tooldecode::EngineRequest& request,
              tooldecode::EngineListener listener);

  // Ends an answer behind the token that completes one of the request's stops.
  static std::function<bool(const tooldecode::TokenEvent&)> stop_of(const AnswerText& begin);

  tooldecode::EngineListener listener(const ChatSession& session, const std::string& id,
                                      std::size_t choice, bool stream);
  static double since(Clock::time_point then);

  // After the step, so that who has a reply finds it in the counts.
  void deliver();

  void open(const std::string& id, const ChatRequest& chat);
  // Puts an output where the engine looks for it; how many entries that made.
  std::size_t insert(const std::string& id, const tooldecode::ToolSet& tools, CachedOutput output,
                     Clock::duration keep_alive);
  void close(const std::string& id);
  [[nodiscard]] static std::uint64_t random_number();
  [[nodiscard]] static std::string random_name();

  static constexpr std::size_t max_responses = 1024;
  static constexpr std::size_t max_bytes     = std::size_t{16} << 20;

  ReplyTraces* traces_;
  const Assistant* assistant_;
  std::size_t context_;  // of the model
  const Format* format_;
  ServiceOptions options_;
  ConstraintCache constraints_;
  FairPlaces places_;
  tooldecode::ToolCache cache_;
  std::unique_ptr<ChatEngine> engine_;
  DurationHistogram first_token_seconds_;
  DurationHistogram request_seconds_;
  std::vector<Reply> replies_;  // of the engine's last step

  mutable std::mutex mutex_;  // of what is below
  std::map<std::string, Response, std::less<>> responses_;
  std::deque<std::string> ended_;  // their ids, the oldest first
  std::size_t bytes_ = 0;          // of all responses
  EarlyOutputs early_;
  std::size_t misnamed_ = 0;  // outputs that came before their request, which had no such tool

  std::jthread thread_;  // the engine's; ends before anything that it uses
};

}  // namespace program
