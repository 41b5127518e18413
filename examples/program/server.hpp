/// \file
/// ChatService: answers chat requests with one engine over a model, without the HTTP part.
#pragma once

#include <algorithm>
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
#include <span>
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
#include <tooldecode/core/thread_pool.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/execute/tool_cache.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/tools/call_key.hpp>

#include <program/assistant.hpp>
#include <program/chat_engine.hpp>
#include <program/early_outputs.hpp>
#include <program/fair_places.hpp>
#include <program/hosted_tools.hpp>
#include <program/metrics.hpp>
#include <program/openai.hpp>
#include <program/reasoning.hpp>
#include <program/reply.hpp>
#include <program/reply_traces.hpp>

namespace program {

/// Passes events from the engine's thread to a request's handler.
class Exchange {
 public:
  /// Calls that the client must run while the engine waits.
  using Calls = std::vector<tooldecode::ToolCall>;
  /// For one choice: a token, calls, a turn after which the engine continued, or the end.
  struct Event {
    std::size_t choice = 0;
    std::variant<tooldecode::TokenEvent, Calls, tooldecode::EngineTurn, tooldecode::EngineReply>
        what;
  };

  void put(Event event);
  /// The next event; empty if none came in this time.
  [[nodiscard]] std::optional<Event> take(std::chrono::milliseconds time);

 private:
  std::mutex mutex_;
  std::condition_variable is_there_;
  std::deque<Event> events_;
};

/// What answers may have, beside what their request says.
struct AnswerRules {
  std::size_t whitespace = 0;  ///< see ChoiceOptions; the same for all requests of a server
  /// The block that may come first, or that the prompt has opened.
  std::optional<tooldecode::formats::ReasoningDelimiters> reasoning{};
};

/// Caches constraints by tools, choice and reasoning. An agent sends the same ones again and again, and a used
/// constraint already has its states and masks. Only constraints of one memory are kept, so that
/// all together stay within the index's budget.
class ConstraintCache {
 public:
  /// The constraint of a request; ApiError for documents that cannot be built, or if it is
  /// cancelled.
  ///
  /// Few are built at the same time, and those of clients that have none in work come first.
  ///
  /// \param watch  called repeatedly while others or it are built; an exception ends that
  [[nodiscard]] tooldecode::ToolCallFSM get(const Assistant& assistant, const Format& format,
                                            const ChatRequest& chat, const AnswerRules& rules,
                                            const std::string& client,
                                            const std::function<void()>& watch);
  /// Stops building and refuses to build more.
  void cancel() noexcept { cancelled_ = true; }
  /// Masks computed ahead, while the prompts of requests with new tools were read.
  [[nodiscard]] std::size_t prepared_masks() const noexcept { return prepared_masks_; }
  /// Calls `watch`, unless building is cancelled: then it throws.
  [[nodiscard]] std::function<void()> wanted_by(std::function<void()> watch) const;

 private:
  static constexpr std::size_t capacity       = 32;
  static constexpr std::size_t most_preparing = 8;

  [[nodiscard]] std::optional<tooldecode::ToolCallFSM> find(const std::string& key);
  void prepare(const tooldecode::ToolCallFSM& calls);

  static std::string key_of(const ChatRequest& chat, const AnswerRules& rules);

  [[noreturn]] static void refuse(const ChatRequest& chat, const tooldecode::Error& error);

  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::list<std::pair<std::string, tooldecode::ToolCallFSM>> entries_;
  FairPlaces builds_{std::max<std::size_t>(2, std::thread::hardware_concurrency()), 1024};
  std::atomic<std::size_t> prepared_masks_ = 0;
  std::atomic<std::size_t> preparing_      = 0;
  tooldecode::ThreadPool idle_{1};  // destroyed first
};

struct ServiceOptions {
  std::size_t max_batch   = 32;  ///< requests decoded at the same time
  std::size_t max_waiting = 96;
  /// See BatchOptions; 0: as many tokens as take at most a quarter longer than one, at most 6, or no
  /// limit if those are 64 or more.
  std::size_t max_shared   = 0;
  std::size_t prefix_cache = 16'384;  ///< tokens kept of earlier requests
  std::size_t cache_bytes  = std::size_t{64} << 20;
  double keep_alive        = 300;  ///< default seconds that a tool's output is kept
  std::size_t whitespace   = 0;    ///< see ChoiceOptions
  /// Before an answer: `no`, `block` where it may be, `open` where the prompt has opened a block, or
  /// `auto`, see `reasoning_after`.
  std::string reasoning = automatic_reasoning;
  EarlyOptions early;  ///< for outputs of unknown responses
  /// Costs of the model's passes; limit how much of a draft is verified.
  tooldecode::TreeCosts costs = tooldecode::TreeCosts::flat();
};

/// A request that the engine works on. Its handler must cancel it if it stops listening before the
/// reply.
struct ChatSession {
  std::string id{};
  std::string unique;           ///< unique to this request
  AnswerText first_text;        ///< initial state of the first turn
  AnswerText later_text;        ///< initial state of each turn behind results
  tooldecode::ToolSet tools{};  ///< of the request, as far as they are enforced
  std::size_t prompt_tokens = 0;
  bool may_reason           = true;  ///< whether an answer may have reasoning
  std::shared_ptr<Exchange> events;
  std::vector<std::function<void()>> cancel{};           ///< one per choice
  std::shared_ptr<FairPlaces::Ticket> places = nullptr;  ///< in the batch

  [[nodiscard]] const AnswerText& text(std::size_t turn) const noexcept {
    return turn == 0 ? first_text : later_text;
  }
};

/// Answers chat requests, several at the same time, and keeps the tool outputs that clients
/// announce.
///
/// A client may name its response, and may use the same name for several responses, one after
/// another: outputs that it caches under that name serve all of them. Outputs that it announces
/// before the first response are kept until then, within limits.
class ChatService {
 public:
  /// \param make_engine  what the engine refers to must outlive the service
  /// \param traces       receives replies; may be null; must outlive the service
  /// \param hosted       runs tools of requests; may be null; must outlive the service
  ChatService(const Assistant& assistant, const Format& format, ServiceOptions options,
              const EngineMaker& make_engine, ReplyTraces* traces = nullptr,
              const HostedTools* hosted = nullptr);

  [[nodiscard]] const Assistant& assistant() const noexcept { return *assistant_; }
  [[nodiscard]] const Format& format() const noexcept { return *format_; }

  /// Submits a request when it is its client's turn; ApiError if it cannot be answered.
  /// \param client  shares places fairly with other clients
  /// \param watch   called while the request waits for a place or its constraint; throws if the
  ///                client is gone
  [[nodiscard]] ChatSession start(const ChatRequest& chat, const std::string& client,
                                  const std::function<void()>& watch);

  /// Replaces entries of type `mcp` in a body's tools, see HostedTools.
  [[nodiscard]] HostedTools::Expanded expand_tools(Json& body) const {
    return hosted_ == nullptr ? HostedTools({}, {}).expand(body) : hosted_->expand(body);
  }
  [[nodiscard]] bool is_busy() const { return places_.waiting() > 0; }
  /// Cancels building for requests that are not submitted yet.
  void cancel_building() noexcept { constraints_.cancel(); }

  /// Keeps the outputs of a response's calls, all or (with an ApiError) none; returns the number of
  /// entries made.
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

  struct Response {
    tooldecode::ToolSet tools;
    std::size_t bytes    = 0;  // of the tool documents
    bool streams_calls   = false;
    bool active          = true;
    std::uint64_t serial = 0;  // of the request: an id may be used again
  };
  struct Reply {
    std::string id;
    std::size_t choice;
    std::shared_ptr<Exchange> events;
    std::shared_ptr<FairPlaces::Ticket> places;
    tooldecode::EngineReply reply;
  };

  static Clock::duration duration(double seconds);

  // The reasoning block that may precede an answer to a prompt with this end, see
  // WrittenPrompt::template_end.
  [[nodiscard]] std::optional<tooldecode::formats::ReasoningDelimiters> reasoning(
      const ChatRequest& chat, std::string_view template_end) const;
  // The end of prompts behind results, if the request may have such turns and the end decides
  // whether there is reasoning.
  [[nodiscard]] std::optional<std::string> end_after_results(const ChatRequest& chat) const;

  // A cut call or value is useless; a cut text is not.
  static bool must_end(const ChatRequest& chat);

  // Returns the request's serial number, for `cancel`.
  std::uint64_t submit(const ChatRequest& chat, const tooldecode::EngineRequest& request,
                       tooldecode::EngineListener listener, const std::function<void()>& watch);
  void cancel(const std::string& id, std::uint64_t serial);

  // Ends an answer after the token that completes one of the request's stop texts.
  static std::function<bool(const tooldecode::TokenEvent&)> stop_of(const AnswerText& first,
                                                                    const AnswerText& later);

  tooldecode::EngineListener listener(const ChatSession& session,
                                      const tooldecode::EngineRequest& request, std::size_t choice,
                                      bool stream);

  // Runs after the step, so that the counts include a delivered reply.
  void deliver();

  std::uint64_t open(const std::string& id, const ChatRequest& chat);
  // Puts an output into the engine's cache; returns the number of entries made.
  std::size_t insert(const std::string& id, const tooldecode::ToolSet& tools, CachedOutput output,
                     Clock::duration keep_alive);
  void close(const std::string& id);
  [[nodiscard]] static std::uint64_t random_number();
  [[nodiscard]] static std::string random_name();

  static constexpr std::size_t max_responses = 1024;
  static constexpr std::size_t max_bytes     = std::size_t{16} << 20;

  ReplyTraces* traces_;
  const HostedTools* hosted_;
  const Assistant* assistant_;
  std::size_t context_;  // context length of the model
  const Format* format_;
  ServiceOptions options_;
  bool has_messages_;       // the format's texts have messages around them, those of reasoning too
  bool depends_on_prompt_;  // whether there is reasoning
  ConstraintCache constraints_;
  FairPlaces places_;
  tooldecode::ToolCache cache_;
  std::unique_ptr<ChatEngine> engine_;
  DurationHistogram first_token_seconds_;
  DurationHistogram request_seconds_;
  std::vector<Reply> replies_;  // of the engine's last step

  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, Response, std::less<>> responses_;
  std::deque<std::string> ended_;  // ids, oldest first
  std::size_t bytes_    = 0;
  std::uint64_t serial_ = 0;
  EarlyOutputs early_;
  std::size_t misnamed_ = 0;  // early outputs whose request has no such tool

  std::jthread thread_;  // the engine's thread; joined before anything that it uses is destroyed
};

}  // namespace program
