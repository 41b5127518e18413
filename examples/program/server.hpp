/// \file
/// ChatService: chat requests answered by one engine over a model, without the HTTP.
#pragma once

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
#include <random>
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
#include <program/early_outputs.hpp>
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

  void put(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    is_there_.notify_one();
  }
  /// The next event; nothing where none came in this time.
  [[nodiscard]] std::optional<Event> take(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    if (!is_there_.wait_for(lock, time, [this] { return !events_.empty(); })) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_there_;
  std::deque<Event> events_;
};

/// Constraints by their tools and choice: an agent asks with the same ones again and again, and a
/// constraint that has been used knows its states and masks.
class ConstraintCache {
 public:
  /// The constraint of a request; ApiError for documents that give none.
  [[nodiscard]] tooldecode::ToolCallFSM get(const AssistantBase& assistant, const Format& format,
                                            const ChatRequest& chat) {
    const std::string key = key_of(chat);
    {
      const std::lock_guard lock(mutex_);
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->first != key) continue;
        entries_.splice(entries_.begin(), entries_, entry);
        return entry->second;
      }
    }
    try {
      auto choice        = chat.tools.choice;
      choice.text_schema = chat.schema;
      const auto calls   = format.constrain(assistant.masks, chat.tools.callable, choice);
      const std::lock_guard lock(mutex_);
      entries_.emplace_front(key, calls);
      if (entries_.size() > capacity) entries_.pop_back();
      return calls;
    } catch (const tooldecode::Error& error) {
      refuse(chat, error);
    }
  }

 private:
  static constexpr std::size_t capacity = 32;

  static std::string key_of(const ChatRequest& chat) {
    const auto& [documents, all, callable, choice] = chat.tools;
    std::string key = std::to_string(static_cast<int>(choice.choice)) + ' ' +
                      std::to_string(choice.parallel) + ' ' + choice.name + '\n' +
                      (chat.schema ? json_text(*chat.schema) : "") + '\n' + json_text(documents);
    if (callable.size() == all.size()) return key;
    for (const tooldecode::Tool& tool : callable) (key += '\n') += tool.name;
    return key;
  }

  [[noreturn]] static void refuse(const ChatRequest& chat, const tooldecode::Error& error) {
    constexpr std::string_view place = tooldecode::detail::text_schema_place;
    const std::string what           = error.what();
    if (chat.schema && error.where() == place) {  // the schema beside the tools, or the format
      throw ApiError(400, "invalid_value", "response_format",
                     "response_format: " + what.substr(place.size() + 2));
    }
    const bool is_in_schema = error.where().starts_with(place);
    if (chat.schema && (is_in_schema || chat.tools.all.empty())) {
      throw ApiError(400, "invalid_schema", "response_format.json_schema.schema",
                     "response_format.json_schema.schema: " +
                         (is_in_schema ? '#' + what.substr(place.size()) : what));
    }
    throw ApiError(400, "invalid_tool", "tools", "tools: " + what);
  }

  std::mutex mutex_;
  std::list<std::pair<std::string, tooldecode::ToolCallFSM>> entries_;
};

/// An EngineSpeculator over a model of any kind.
class ChatEngine {
 public:
  virtual ~ChatEngine() = default;

  virtual void submit(tooldecode::EngineRequest request, tooldecode::EngineListener listener) = 0;
  virtual void cancel(std::string_view id)                                                    = 0;
  virtual bool step()                                                                         = 0;
  virtual void wait(const std::stop_token& stop)                                              = 0;
  [[nodiscard]] virtual tooldecode::EngineCounts counts() const                               = 0;
};

/// The arguments are those of EngineSpeculator.
template <class M, class... Drafters>
std::unique_ptr<ChatEngine> make_engine(const M& model, tooldecode::ToolCache* cache,
                                        tooldecode::ResultTokens render,
                                        tooldecode::EngineOptions options, Drafters... drafters) {
  using Engine = tooldecode::EngineSpeculator<M, Drafters...>;
  struct EngineOfModel final : ChatEngine {
    EngineOfModel(const M& used, tooldecode::ToolCache* outputs, tooldecode::ResultTokens results,
                  tooldecode::EngineOptions settings, Drafters... given)
        : engine(used, outputs, std::move(results), settings, std::move(given)...) {}

    void submit(tooldecode::EngineRequest request, tooldecode::EngineListener listener) override {
      engine.submit(std::move(request), std::move(listener));
    }
    void cancel(std::string_view id) override { engine.cancel(id); }
    bool step() override { return engine.step(); }
    void wait(const std::stop_token& stop) override { engine.wait(stop); }
    [[nodiscard]] tooldecode::EngineCounts counts() const override { return engine.counts(); }

    Engine engine;
  };
  return std::make_unique<EngineOfModel>(model, cache, std::move(render), options,
                                         std::move(drafters)...);
}

/// Settings of a ChatService.
struct ServiceOptions {
  std::size_t max_batch    = 32;      ///< requests decoded at once
  std::size_t max_waiting  = 96;      ///< requests that wait for a place
  std::size_t prefix_cache = 16'384;  ///< tokens kept of earlier requests
  std::size_t cache_bytes  = std::size_t{64} << 20;
  double keep_alive        = 300;  ///< seconds that a tool's output is kept, unless told
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
  std::vector<std::function<void()>> cancel{};  ///< each of its choices
};

/// Answers chat requests, several at once, and keeps the tool outputs that clients announce.
///
/// A client may name its response, and name several the same, one after the other: what it puts
/// into the cache under that name serves all of them. What it announces before the first of them is
/// kept until then, within bounds.
class ChatService {
 public:
  /// \param traces    told of replies, or null; outlives the service
  /// \param drafters  beside those of announced outputs; what they refer to outlives the service
  template <class M, class... Drafters>
  ChatService(const Assistant<M>& assistant, const Format& format, ServiceOptions options,
              ReplyTraces* traces = nullptr, Drafters... drafters)
      : traces_(traces),
        assistant_(&assistant),
        context_(tooldecode::decode::context_length_of(assistant.model)),
        format_(&format),
        options_(options),
        cache_({.max_bytes = options.cache_bytes, .keep_alive = duration(options.keep_alive)}),
        engine_(make_engine(
            assistant.model, &cache_,
            [this](std::span<const tooldecode::ToolCall> calls,
                   std::span<const tooldecode::ToolResult> results) {
              return assistant_->result_tokens(calls, results);
            },
            {.batch = {.max_batch = options.max_batch, .prefix_cache = options.prefix_cache},
             .costs = options.costs},
            std::move(drafters)...)),
        early_(options.early),
        thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const bool moved = engine_->step();
            deliver();
            if (!moved) engine_->wait(stop);
          }
        }) {}

  [[nodiscard]] const AssistantBase& assistant() const noexcept { return *assistant_; }
  [[nodiscard]] const Format& format() const noexcept { return *format_; }

  /// Submits a request; ApiError where it cannot be answered.
  [[nodiscard]] ChatSession start(const ChatRequest& chat) {
    auto calls = constraints_.get(*assistant_, *format_, chat);
    ChatSession session{.unique = random_name(),
                        .text   = AnswerText(calls, chat.stops),
                        .events = std::make_shared<Exchange>()};
    session.id  = chat.response_id.empty() ? "chatcmpl-" + session.unique : chat.response_id;
    auto prompt = assistant_->prompt(chat.tools.all, *format_, chat.messages);
    session.prompt_tokens = prompt.size();
    if (prompt.size() > context_) {
      throw ApiError(400, "context_length_exceeded", "messages",
                     "the prompt has " + std::to_string(prompt.size()) +
                         " tokens, the model's context holds " + std::to_string(context_));
    }
    tooldecode::EngineRequest request{
        .id       = session.id,
        .prompt   = std::move(prompt),
        .calls    = std::move(calls),
        .options  = chat.decode,
        .max_wait = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * chat.tool_wait))};
    request.options.max_tokens  = chat.max_tokens.value_or(context_);
    request.options.always_ends = must_end(chat);
    if (traces_ != nullptr) request.options.trace = traced_alternatives;
    const std::uint64_t seed = chat.seed ? *chat.seed : random_number();
    try {
      for (std::size_t choice = 0; choice < chat.choices; ++choice) {
        // Of one that is no id that a client may name, for all but the first.
        if (choice > 0) request.id = session.id + '#' + std::to_string(choice);
        request.options.seed = seed + choice;
        if (!chat.stops.empty()) request.options.ends_after = stop_of(session.text);
        submit(chat, request, listener(session, request.id, choice, chat.stream));
        session.cancel.push_back([this, id = request.id] { engine_->cancel(id); });
      }
    } catch (...) {
      for (const auto& cancel : session.cancel) cancel();
      throw;
    }
    return session;
  }

  /// Keeps what calls of a response would return, all of them or, with an ApiError, none; how many
  /// entries that made.
  std::size_t cache(const std::string& response_id, std::vector<CachedOutput> outputs) {
    const std::lock_guard lock(mutex_);
    const auto known = responses_.find(response_id);
    if (known == responses_.end()) {
      return early_.keep(response_id, std::move(outputs),
                         std::chrono::duration<double>(options_.keep_alive));
    }
    if (known->second.streams_calls) {
      throw ApiError(
          409, "response_streams_calls", "response_id",
          "the response streams its calls: name it by response_id, or ask for tool_wait");
    }
    const tooldecode::ToolSet& tools = known->second.tools;
    for (const CachedOutput& output : outputs) {
      if (tools.find(output.call.name)) continue;
      const std::string place = output.place + "/name";
      throw ApiError(400, "unknown_tool", place,
                     place + ": the response has no tool of the name " + output.call.name);
    }
    std::size_t kept = 0;
    for (CachedOutput& output : outputs) {
      const auto keep_alive = duration(output.keep_alive.value_or(options_.keep_alive));
      kept += insert(response_id, tools, std::move(output), keep_alive);
    }
    return kept;
  }

  void write(MetricsText& page) {
    const auto value = [&page](const char* name, const char* help, std::size_t count) {
      page.value(name, help, static_cast<double>(count));
    };
    const tooldecode::EngineCounts counts = engine_->counts();
    value("requests_running", "Chat requests with a place in the batch.", counts.present);
    value("requests_waiting", "Chat requests that wait for a place.", counts.arrived);
    value("replies_total", "Chat requests that ended, cancelled ones too.", counts.replies);
    value("passes_total", "Forward passes of the model.", counts.batch.passes);
    value("prompt_tokens_total", "Tokens of prompts.", counts.batch.prompt_tokens);
    value("reused_tokens_total", "Tokens of prompts that were in the prefix cache.",
          counts.batch.reused_tokens);
    value("generated_tokens_total", "Tokens emitted.", counts.batch.generated_tokens);
    value("drafted_tokens_total", "Draft tokens that were verified, those of announced calls too.",
          counts.batch.drafted_tokens);
    value("accepted_tokens_total", "Of the drafted tokens those that were right.",
          counts.batch.accepted_tokens);
    value("preempted_total", "Times that a request gave up its cache, and was read anew later.",
          counts.batch.preempted);
    value("cached_turns_total", "Turns whose calls had their outputs in the cache.",
          counts.cached_turns);
    value("missed_turns_total", "Turns whose calls were left to the client.", counts.missed_turns);
    const tooldecode::ToolCacheStatistics cache = cache_.statistics();
    value("tool_cache_hits_total", "Outputs found in the tool cache.", cache.hits);
    value("tool_cache_misses_total", "Outputs looked for in vain.", cache.misses);
    value("tool_cache_inserted_total", "Outputs put into the tool cache.", cache.inserted);
    value("tool_cache_expired_total", "Outputs whose time was over.", cache.expired);
    value("tool_cache_evicted_total", "Outputs that made place for others.", cache.evicted);
    value("tool_cache_entries", "Outputs in the tool cache.", cache.entries);
    value("tool_cache_bytes", "Bytes in the tool cache.", cache.bytes);
    write_early(value);
    first_token_seconds_.write(page, "first_token_seconds",
                               "From a chat request to its first token.");
    request_seconds_.write(page, "request_seconds", "From a chat request to its end.");
  }

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
    tooldecode::EngineReply reply;
  };

  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  // An answer that is a call or a value is of no use when it is cut; a text is.
  static bool must_end(const ChatRequest& chat) {
    using tooldecode::ToolChoice;
    const ToolChoice choice = chat.tools.choice.choice;
    return choice == ToolChoice::required || choice == ToolChoice::named || chat.schema.has_value();
  }

  void submit(const ChatRequest& chat, const tooldecode::EngineRequest& request,
              tooldecode::EngineListener listener) {
    open(request.id, chat);
    try {
      engine_->submit(request, std::move(listener));
    } catch (const tooldecode::Error& error) {
      close(request.id);
      throw ApiError(400, "invalid_value", error.where(), error.what());
    } catch (...) {
      close(request.id);
      throw;
    }
  }

  // Ends an answer behind the token that completes one of the request's stops.
  static std::function<bool(const tooldecode::TokenEvent&)> stop_of(const AnswerText& begin) {
    return [begin, text = begin](const tooldecode::TokenEvent& event) mutable {
      if (event.index == 0) text = begin;
      static_cast<void>(text.push(event.token));
      return text.stop() != nullptr;
    };
  }

  tooldecode::EngineListener listener(const ChatSession& session, const std::string& id,
                                      std::size_t choice, bool stream) {
    const auto asked = Clock::now();
    return {.on_token =
                [this, events = session.events, choice, stream, asked](
                    std::size_t turn, const tooldecode::TokenEvent& event) {
                  if (turn == 0 && event.index == 0) first_token_seconds_.observe(since(asked));
                  if (stream) events->put({choice, event});
                },
            .on_calls =
                [events = session.events, choice](const tooldecode::EngineTurn& turn) {
                  events->put({choice, turn.calls});
                },
            .on_cached_turn =
                [events = session.events, choice](const tooldecode::EngineTurn& turn) {
                  events->put({choice, turn});
                },
            .on_reply =
                [this, events = session.events, id, choice, asked](tooldecode::EngineReply reply) {
                  request_seconds_.observe(since(asked));
                  if (traces_ != nullptr) traces_->add(id, reply);
                  replies_.push_back({id, choice, events, std::move(reply)});
                }};
  }
  static double since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }

  // After the step, so that who has a reply finds it in the counts.
  void deliver() {
    for (Reply& reply : replies_) {
      close(reply.id);
      reply.events->put({reply.choice, std::move(reply.reply)});
    }
    replies_.clear();
  }

  void open(const std::string& id, const ChatRequest& chat) {
    const std::lock_guard lock(mutex_);
    if (active_ >= options_.max_batch + options_.max_waiting) {
      throw ApiError(429, "too_many_requests", "",
                     "the server works on as many requests as it may; ask again later");
    }
    const auto known = responses_.find(id);
    if (known != responses_.end() && known->second.active) {
      throw ApiError(409, "response_id_in_use", "response_id",
                     "a response of this id is under way");
    }
    if (known != responses_.end()) {
      bytes_ -= known->second.bytes;
      std::erase(ended_, id);
    }
    const std::size_t bytes = json_text(chat.tools.documents).size();
    responses_[id]          = {chat.tools.all, bytes, chat.streams_calls()};
    bytes_ += bytes;
    ++active_;
    const auto now = Clock::now();
    for (EarlyOutputs::Entry& entry : early_.take(id)) {
      if (chat.tools.all.find(entry.output.call.name)) {
        insert(id, chat.tools.all, std::move(entry.output), entry.end - now);
      } else {
        ++misnamed_;
      }
    }
  }
  // Puts an output where the engine looks for it; how many entries that made.
  std::size_t insert(const std::string& id, const tooldecode::ToolSet& tools, CachedOutput output,
                     Clock::duration keep_alive) {
    std::promise<tooldecode::ToolResult> result;
    result.set_value({.status = tooldecode::ToolStatus::ok, .output = std::move(output.output)});
    std::string key = tooldecode::call_key(output.call, &tools[*tools.find(output.call.name)]);
    return cache_.insert(id,
                         {.call          = std::move(output.call),
                          .key           = std::move(key),
                          .result        = result.get_future().share(),
                          .any_arguments = output.any_arguments},
                         keep_alive);
  }
  void close(const std::string& id) {
    const std::lock_guard lock(mutex_);
    responses_.at(id).active = false;
    --active_;
    ended_.push_back(id);
    while (!ended_.empty() && (ended_.size() > max_responses || bytes_ > max_bytes)) {
      const auto oldest = responses_.find(ended_.front());
      bytes_ -= oldest->second.bytes;
      responses_.erase(oldest);
      ended_.pop_front();
    }
  }
  [[nodiscard]] std::uint64_t random_number() {
    const std::lock_guard lock(mutex_);
    return random_();
  }
  [[nodiscard]] std::string random_name() {
    std::ostringstream name;
    name << std::hex << std::setfill('0') << std::setw(16) << random_number();
    return name.str();
  }

  static constexpr std::size_t max_responses = 1024;
  static constexpr std::size_t max_bytes     = std::size_t{16} << 20;

  ReplyTraces* traces_;
  const AssistantBase* assistant_;
  std::size_t context_;  // of the model
  const Format* format_;
  ServiceOptions options_;
  ConstraintCache constraints_;
  tooldecode::ToolCache cache_;
  std::unique_ptr<ChatEngine> engine_;
  DurationHistogram first_token_seconds_;
  DurationHistogram request_seconds_;
  std::vector<Reply> replies_;  // of the engine's last step

  mutable std::mutex mutex_;  // of what is below
  std::map<std::string, Response, std::less<>> responses_;
  std::deque<std::string> ended_;  // their ids, the oldest first
  std::size_t active_ = 0;
  std::size_t bytes_  = 0;  // of all responses
  EarlyOutputs early_;
  std::size_t misnamed_ = 0;  // outputs that came before their request, which had no such tool
  std::mt19937_64 random_{std::random_device{}()};

  std::jthread thread_;  // the engine's; ends before anything that it uses
};

}  // namespace program
