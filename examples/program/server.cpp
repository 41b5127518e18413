#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <iomanip>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <program/seconds.hpp>
#include <program/server.hpp>

namespace program {

void Exchange::put(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  is_there_.notify_one();
}

std::optional<Exchange::Event> Exchange::take(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  if (!is_there_.wait_for(lock, time, [this] { return !events_.empty(); })) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

namespace {

// Whether the texts of a format have messages around them.
bool has_messages(const Format& format) {
  tooldecode::Grammar unused;
  return format.format.parts(unused, {}, {}, {.choice = tooldecode::ToolChoice::none})
      .texts.has_value();
}

void require_plain_text(const Format& format, const std::string& place) {
  if (!has_messages(format)) return;
  throw ApiError(400, "invalid_value", place,
                 place + " cannot be enforced in the format " + format.name +
                     ": its texts have messages around them");
}

// The result of a function that may build for long, in its own thread. What `watch` throws
// meanwhile sets `cancelled`; it is thrown if the function then fails with Errc::cancelled.
template <class Run>
auto watched(const std::function<void()>& watch, std::atomic<bool>& cancelled, Run run) {
  auto result = std::async(std::launch::async, std::move(run));
  std::exception_ptr unwanted;
  while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    if (unwanted) continue;
    try {
      watch();
    } catch (...) {
      unwanted  = std::current_exception();
      cancelled = true;
    }
  }
  try {
    return result.get();
  } catch (const tooldecode::Error& error) {
    if (unwanted && error.code() == tooldecode::Errc::cancelled) std::rethrow_exception(unwanted);
    throw;
  }
}

}  // namespace

std::optional<tooldecode::ToolCallFSM> ConstraintCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->first != key) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->second;
  }
  return std::nullopt;
}

tooldecode::ToolCallFSM ConstraintCache::get(const Assistant& assistant, const Format& format,
                                             const ChatRequest& chat, const AnswerRules& rules,
                                             const std::string& client,
                                             const std::function<void()>& watch) {
  const std::string key = key_of(chat, rules);
  if (const auto known = find(key)) return *known;
  const auto place = builds_.take(client, 1, watch);
  if (place == nullptr) {
    throw ApiError(429, "too_many_requests", "",
                   "the server builds as many constraints as it may; ask again later");
  }
  if (const auto known = find(key)) return *known;  // built while this request waited
  try {
    auto choice = chat.tools.choice;
    if (chat.text.schema) choice.text_schema = chat.text.schema->schema;
    const auto limit            = static_cast<std::uint32_t>(rules.whitespace);
    choice.whitespace           = limit;
    choice.reasoning            = rules.reasoning;
    std::atomic<bool> cancelled = false;
    choice.limits               = {.cancelled = &cancelled};
    if (chat.text.grammar && !chat.prompt) require_plain_text(format, chat.text.grammar->place);
    const tooldecode::ToolCallFSM calls = watched(wanted_by(watch), cancelled, [&] {
      return chat.text.grammar
                 ? tooldecode::ToolCallFSM(
                       assistant.masks, chat.tools.callable,
                       GrammarText(*chat.text.grammar, assistant.tokenizer.vocabulary(), limit),
                       choice)
                 : tooldecode::ToolCallFSM(assistant.masks, chat.tools.callable, format.format,
                                           choice);
    });
    const std::lock_guard lock(mutex_);
    // When the index has begun new states, constraints of the old states would keep their memory.
    const auto memory = calls.initial().memory;
    entries_.remove_if([&](const auto& entry) { return entry.second.initial().memory != memory; });
    entries_.emplace_front(key, calls);
    if (entries_.size() > capacity) entries_.pop_back();
    prepare(calls);
    return calls;
  } catch (const tooldecode::Error& error) {
    refuse(chat, error);
  }
}

std::function<void()> ConstraintCache::wanted_by(std::function<void()> watch) const {
  return [this, watch = std::move(watch)] {
    if (cancelled_) throw_stopping();
    watch();
  };
}

void ConstraintCache::prepare(const tooldecode::ToolCallFSM& calls) {
  if (preparing_ >= most_preparing) return;
  ++preparing_;
  idle_.submit([this, calls] {
    prepared_masks_ += calls.prepare(calls.initial(), {.cancelled = &cancelled_});
    --preparing_;
  });
}

namespace {

// The tools of a request without those that the constraint leaves out, with the notes of both.
tooldecode::ToolSet enforced_tools(const RequestTools& tools, const tooldecode::ToolSet& enforced) {
  if (tools.choice.enforcement == tooldecode::ToolEnforcement::strict) return tools.all;
  std::vector<std::shared_ptr<const tooldecode::Tool>> left;
  for (std::size_t i = 0; i < tools.all.size(); ++i) {
    const std::string& name = tools.all[i].name;
    const auto at           = enforced.find(name);
    if (at) {
      left.push_back(enforced.share(*at));
    } else if (!tools.callable.find(name)) {
      left.push_back(tools.all.share(i));
    }
  }
  std::vector<tooldecode::tools::Note> more;
  for (const auto& note : enforced.notes()) {
    const auto is_same = [&](const auto& other) {
      return other.reading == note.reading && other.pointer == note.pointer;
    };
    const auto known = tools.all.notes();
    if (std::none_of(known.begin(), known.end(), is_same)) more.push_back(note);
  }
  return tools.all.replaced(std::move(left), more);
}

}  // namespace

std::string ConstraintCache::key_of(const ChatRequest& chat, const AnswerRules& rules) {
  const auto& [documents, exact, all, callable, choice] = chat.tools;
  std::string key =
      std::to_string(static_cast<int>(choice.choice)) + ' ' + std::to_string(choice.parallel) +
      ' ' + std::to_string(static_cast<int>(choice.enforcement)) + ' ' + choice.name + '\n' +
      (chat.text.schema ? json_text(chat.text.schema->schema) : "") + '\n' +
      (chat.text.grammar ? chat.text.grammar->key() : "") + '\n' +
      (rules.reasoning ? json_text(Json::array({rules.reasoning->begin, rules.reasoning->end}))
                       : "") +
      '\n' + exact;
  if (callable.size() == all.size()) return key;
  for (const tooldecode::Tool& tool : callable) (key += '\n') += tool.name;
  return key;
}

void ConstraintCache::refuse(const ChatRequest& chat, const tooldecode::Error& error) {
  constexpr std::string_view place = tooldecode::detail::text_schema_place;
  const std::string what           = error.what();
  const std::string format         = chat.text.any() ? "" : chat.text.place();
  if (chat.text.grammar) {
    const bool is_schema = chat.text.grammar->kind == TextGrammar::Kind::schema;
    throw ApiError(400, is_schema ? "invalid_schema" : "invalid_grammar", format,
                   format + ": " + what);
  }
  if (chat.text.schema && error.where() == place) {  // the schema beside the tools, or the format
    const std::string key = format.substr(0, format.find('.'));
    throw ApiError(400, "invalid_value", key, key + ": " + what.substr(place.size() + 2));
  }
  const bool is_in_schema = error.where().starts_with(place);
  if (chat.text.schema && (is_in_schema || chat.tools.all.empty())) {
    throw ApiError(400, "invalid_schema", format,
                   format + ": " + (is_in_schema ? '#' + what.substr(place.size()) : what));
  }
  throw ToolError(chat.tools.documents, error);
}

namespace {

std::size_t shared_tokens(const ServiceOptions& options) {
  if (options.max_shared > 0) return options.max_shared;
  // A pass's cost leaves out masks and sampling, which small requests wait for as well.
  constexpr std::size_t most = 6;
  const std::size_t cheap    = options.costs.most_tokens(1.25);
  if (cheap >= tooldecode::TreeCosts::max_tokens) return tooldecode::BatchOptions().max_shared;
  return std::min(cheap, most);
}

}  // namespace

ChatService::ChatService(const Assistant& assistant, const Format& format, ServiceOptions options,
                         const EngineMaker& make_engine, ReplyTraces* traces,
                         const HostedTools* hosted)
    : traces_(traces),
      hosted_(hosted),
      assistant_(&assistant),
      context_(assistant.model_ref().context_length()),
      format_(&format),
      options_(options),
      has_messages_(has_messages(format)),
      depends_on_prompt_(
          options.reasoning == automatic_reasoning &&
          names_reasoning([&](std::string_view text) { return assistant.template_says(text); },
                          format.reasoning)),
      places_(options.max_batch, options.max_waiting),
      cache_({.max_bytes = options.cache_bytes, .keep_alive = duration(options.keep_alive)}),
      engine_(make_engine(&cache_, {},  // requests have theirs
                          {.batch = {.max_batch    = options.max_batch,
                                     .prefix_cache = options.prefix_cache,
                                     .max_shared   = shared_tokens(options)},
                           .costs = options.costs})),
      early_(options.early),
      thread_([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          const bool moved = engine_->step();
          deliver();
          if (!moved) engine_->wait(stop);
        }
      }) {}

ChatSession ChatService::start(const ChatRequest& chat, const std::string& client,
                               const std::function<void()>& watch) {
  if (const std::size_t most = places_.most_parts(); chat.choices > most) {
    throw ApiError(400, "invalid_value", "n",
                   "n must be at most " + std::to_string(most) +
                       " here, which is what --max-batch and --max-waiting leave to one client");
  }
  const auto write_prompt = [&](const tooldecode::ToolSet& tools) {
    return chat.prompt
               ? WrittenPrompt{assistant_->raw_prompt(chat.prompt->text, chat.prompt->tokens)}
               : assistant_->write_prompt(tools, *format_, chat.messages,
                                          chat.template_variables());
  };
  // What a turn's prompt ends with decides whether the turn has reasoning.
  std::optional<WrittenPrompt> early;
  if (depends_on_prompt_ && !chat.prompt) early = write_prompt(chat.tools.all);
  const auto rules_of = [&](std::string_view template_end) {
    return AnswerRules{.whitespace = options_.whitespace,
                       .reasoning  = reasoning(chat, template_end)};
  };
  const AnswerRules rules = rules_of(early ? early->template_end : std::string());
  const auto later_end    = end_after_results(chat);
  const AnswerRules later = later_end ? rules_of(*later_end) : rules;
  auto calls              = constraints_.get(*assistant_, *format_, chat, rules, client, watch);
  std::optional<tooldecode::ToolCallFSM> later_calls;
  if (later.reasoning != rules.reasoning) {
    later_calls = constraints_.get(*assistant_, *format_, chat, later, client, watch);
  }
  const auto text_of = [&](const tooldecode::ToolCallFSM& of_turn, const AnswerRules& its) {
    // Only a value of a schema may have white space before it, which is no part of the text.
    return AnswerText(of_turn, chat.stops,
                      {.around_reasoning = its.reasoning.has_value(),
                       .before_text      = its.reasoning && chat.text.any()});
  };
  ChatSession session{.unique     = random_name(),
                      .first_text = text_of(calls, rules),
                      .later_text = text_of(later_calls ? *later_calls : calls, later),
                      .events     = std::make_shared<Exchange>()};
  session.tools = enforced_tools(chat.tools, calls.tools());
  session.id    = chat.response_id.empty() ? std::string(id_prefix(chat.api)) + session.unique
                                           : chat.response_id;
  // Tools that cannot be enforced are changed or left out.
  const bool is_final =
      early && (chat.tools.choice.enforcement == tooldecode::ToolEnforcement::strict ||
                unenforced_places(chat.tools.documents, session.tools).empty());
  auto prompt           = (is_final ? std::move(*early) : write_prompt(session.tools)).tokens;
  session.prompt_tokens = prompt.size();
  session.may_reason    = rules.reasoning || later.reasoning || has_messages_;
  if (prompt.empty()) {
    throw ApiError(400, "invalid_value", std::string(dialogue_key(chat.api)),
                   "the prompt is empty, and the model has no token that begins a text");
  }
  if (prompt.size() > context_) {
    throw ApiError(400, "context_length_exceeded", std::string(dialogue_key(chat.api)),
                   "the prompt has " + std::to_string(prompt.size()) +
                       " tokens, the model's context holds " + std::to_string(context_));
  }
  tooldecode::EngineRequest request{.id       = session.id,
                                    .prompt   = std::move(prompt),
                                    .calls    = std::move(calls),
                                    .options  = chat.decode,
                                    .max_wait = milliseconds(chat.tool_wait),
                                    .origin   = {.client = client, .request = session.unique}};
  request.calls_after_results = std::move(later_calls);
  request.render              = [this, later_end, variables = chat.template_variables()](
                       std::span<const tooldecode::ToolCall> of_turn,
                       std::span<const tooldecode::ToolResult> results) {
    WrittenPrompt more   = assistant_->write_results(of_turn, results, variables);
    const auto& reasoned = format_->reasoning;
    if (later_end &&
        reasoning_after(more.template_end, reasoned) != reasoning_after(*later_end, reasoned)) {
      throw tooldecode::Error(tooldecode::Errc::malformed_document, "chat template",
                              "opens or closes reasoning depending on a tool's result");
    }
    return std::move(more.tokens);
  };
  if (hosted_ != nullptr) request.run_tool = hosted_->run(chat.hosted);
  if (chat.max_orders) {
    request.consistency = {.max_orders = *chat.max_orders, .encode = [this](std::string_view text) {
                             return assistant_->tokenizer.encode(text);
                           }};
  }
  request.options.max_tokens  = chat.max_tokens.value_or(context_);
  request.options.always_ends = must_end(chat);
  if (traces_ != nullptr) request.options.trace = traced_alternatives;
  session.places = places_.take(client, chat.choices, watch);
  if (session.places == nullptr) {
    throw ApiError(429, "too_many_requests", "",
                   "the server works on as many requests as it may; ask again later");
  }
  const std::uint64_t seed = chat.seed ? *chat.seed : random_number();
  try {
    for (std::size_t choice = 0; choice < chat.choices; ++choice) {
      // Other choices get an id that no client can use.
      if (choice > 0) request.id = session.id + '#' + std::to_string(choice);
      request.options.seed = seed + choice;
      if (!chat.stops.empty()) {
        request.options.ends_after = stop_of(session.first_text, session.later_text);
      }
      const std::uint64_t serial =
          submit(chat, request, listener(session, request, choice, chat.stream), watch);
      session.cancel.push_back([this, id = request.id, serial] { cancel(id, serial); });
    }
  } catch (...) {
    for (const auto& cancel : session.cancel) cancel();
    throw;
  }
  return session;
}

std::size_t ChatService::cache(const std::string& response_id, std::vector<CachedOutput> outputs) {
  const std::lock_guard lock(mutex_);
  const auto known = responses_.find(response_id);
  if (known == responses_.end()) {
    if (is_server_id(response_id)) {
      throw ApiError(
          404, "unknown_response", "response_id",
          "there is no such response: outputs that come before their request are kept for "
          "ids that a client has chosen");
    }
    return early_.keep(response_id, std::move(outputs),
                       std::chrono::duration<double>(options_.keep_alive));
  }
  if (known->second.streams_calls) {
    throw ApiError(409, "response_streams_calls", "response_id",
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

void ChatService::write(MetricsText& page) {
  const auto value = [&page](const char* name, const char* help, std::size_t count) {
    page.value(name, help, static_cast<double>(count));
  };
  const tooldecode::EngineCounts counts = engine_->counts();
  value("requests_running", "Chat requests with a place in the batch.", counts.present);
  value("requests_waiting", "Chat requests that wait for a place.",
        counts.arrived + places_.waiting());
  value("replies_total", "Chat requests that ended, cancelled ones too.", counts.replies);
  value("passes_total", "Forward passes of the model.", counts.batch.passes);
  value("read_tokens_total", "Tokens that the passes read, drafts included.",
        counts.batch.read_tokens);
  value("prompt_tokens_total", "Tokens of prompts.", counts.batch.prompt_tokens);
  value("reused_tokens_total", "Tokens of prompts that earlier or present requests had read.",
        counts.batch.reused_tokens);
  value("prepared_masks_total", "Masks computed ahead, while prompts were read.",
        constraints_.prepared_masks());
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
  value("tool_cache_misses_total", "Outputs looked for and not found.", cache.misses);
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

ChatService::Clock::duration ChatService::duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::optional<tooldecode::formats::ReasoningDelimiters> ChatService::reasoning(
    const ChatRequest& chat, std::string_view template_end) const {
  using tooldecode::ToolChoice;
  if (chat.prompt) return std::nullopt;  // a text that is continued has no parts
  const ToolChoice choice = chat.tools.choice.choice;
  const bool is_call      = choice == ToolChoice::required || choice == ToolChoice::named;
  if (has_messages_ && !is_call) return std::nullopt;  // the texts have messages of reasoning
  std::string where = options_.reasoning;
  if (where == automatic_reasoning) {
    if (!depends_on_prompt_) return std::nullopt;
    if (has_messages_) return format_->reasoning;
    where = reasoning_after(template_end, format_->reasoning);
  }
  auto block = parse_reasoning(where, *format_);
  // A text of the grammar may begin as a block does.
  if (block && !block->begin.empty() && chat.text.grammar) return std::nullopt;
  return block;
}

std::optional<std::string> ChatService::end_after_results(const ChatRequest& chat) const {
  const bool may_go_on = !chat.response_id.empty() || chat.tool_wait > 0 || !chat.hosted.empty();
  const bool may_call =
      !chat.tools.callable.empty() && chat.tools.choice.choice != tooldecode::ToolChoice::none;
  if (!depends_on_prompt_ || has_messages_ || !may_go_on || !may_call) return std::nullopt;
  const tooldecode::ToolCall call{.name = chat.tools.callable[0].name};
  const tooldecode::ToolResult result{.status = tooldecode::ToolStatus::ok, .output = "0"};
  try {
    return assistant_->write_results({&call, 1}, {&result, 1}, chat.template_variables())
        .template_end;
  } catch (const tooldecode::Error&) {
    return std::nullopt;  // no results can be written, so that no turn follows
  }
}

bool ChatService::must_end(const ChatRequest& chat) {
  using tooldecode::ToolChoice;
  const ToolChoice choice = chat.tools.choice.choice;
  return choice == ToolChoice::required || choice == ToolChoice::named || chat.text.must_end();
}

void ChatService::cancel(const std::string& id, std::uint64_t serial) {
  // With the lock, so that no later request gets the id meanwhile.
  const std::lock_guard lock(mutex_);
  const auto known = responses_.find(id);
  if (known == responses_.end() || !known->second.active || known->second.serial != serial) return;
  engine_->cancel(id);
}

std::uint64_t ChatService::submit(const ChatRequest& chat, const tooldecode::EngineRequest& request,
                                  tooldecode::EngineListener listener,
                                  const std::function<void()>& watch) {
  const std::uint64_t serial = open(request.id, chat);
  try {
    // Finding the shortest answer may take long.
    std::atomic<bool> cancelled = false;
    watched(constraints_.wanted_by(watch), cancelled, [&] {
      const tooldecode::BuildBudget budget({.cancelled = &cancelled});
      engine_->submit(request, std::move(listener));
    });
    return serial;
  } catch (const tooldecode::Error& error) {
    close(request.id);
    std::string where = error.where(), what = error.what();
    if (where == "max_tokens") {  // by the name that the request has
      what.replace(0, where.size(), chat.max_tokens_name);
      where = chat.max_tokens_name;
    }
    throw ApiError(400, "invalid_value", where, what);
  } catch (...) {
    close(request.id);
    throw;
  }
}

std::function<bool(const tooldecode::TokenEvent&)> ChatService::stop_of(const AnswerText& first,
                                                                        const AnswerText& later) {
  return [later, text = first, began = false](const tooldecode::TokenEvent& event) mutable {
    if (event.index == 0 && std::exchange(began, true)) text = later;
    static_cast<void>(text.push(event.token));
    return text.stop() != nullptr;
  };
}

tooldecode::EngineListener ChatService::listener(const ChatSession& session,
                                                 const tooldecode::EngineRequest& request,
                                                 std::size_t choice, bool stream) {
  const auto asked = Clock::now();
  return {.on_token =
              [this, events = session.events, choice, stream, asked](
                  std::size_t turn, const tooldecode::TokenEvent& event) {
                if (turn == 0 && event.index == 0)
                  first_token_seconds_.observe(seconds_since(asked));
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
              [this, events = session.events, places = session.places, id = request.id, choice,
               asked](tooldecode::EngineReply reply) {
                request_seconds_.observe(seconds_since(asked));
                if (traces_ != nullptr) traces_->add(id, reply);
                replies_.push_back({id, choice, events, places, std::move(reply)});
              }};
}

void ChatService::deliver() {
  for (Reply& reply : replies_) {
    close(reply.id);
    reply.places->end_part();
    reply.events->put({reply.choice, std::move(reply.reply)});
  }
  replies_.clear();
}

std::uint64_t ChatService::open(const std::string& id, const ChatRequest& chat) {
  const std::lock_guard lock(mutex_);
  const auto known = responses_.find(id);
  if (known != responses_.end() && known->second.active) {
    throw ApiError(409, "response_id_in_use", "response_id", "a response of this id is under way");
  }
  if (known != responses_.end()) {
    bytes_ -= known->second.bytes;
    std::erase(ended_, id);
  }
  const std::size_t bytes = json_text(chat.tools.documents).size();
  responses_[id]          = {.tools         = chat.tools.all,
                             .bytes         = bytes,
                             .streams_calls = chat.streams_calls(),
                             .serial        = ++serial_};
  bytes_ += bytes;
  const auto now = Clock::now();
  for (EarlyOutputs::Entry& entry : early_.take(id)) {
    if (chat.tools.all.find(entry.output.call.name)) {
      insert(id, chat.tools.all, std::move(entry.output), entry.end - now);
    } else {
      ++misnamed_;
    }
  }
  return serial_;
}

std::size_t ChatService::insert(const std::string& id, const tooldecode::ToolSet& tools,
                                CachedOutput output, Clock::duration keep_alive) {
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

void ChatService::close(const std::string& id) {
  const std::lock_guard lock(mutex_);
  responses_.at(id).active = false;
  ended_.push_back(id);
  while (!ended_.empty() && (ended_.size() > max_responses || bytes_ > max_bytes)) {
    const auto oldest = responses_.find(ended_.front());
    bytes_ -= oldest->second.bytes;
    responses_.erase(oldest);
    ended_.pop_front();
  }
}

std::uint64_t ChatService::random_number() {
  std::random_device system;
  return std::uint64_t{system()} << 32 | system();
}

// 128 random bits from the system: known names do not reveal others.
std::string ChatService::random_name() {
  std::ostringstream name;
  for (int i = 0; i < 2; ++i) {
    name << std::hex << std::setfill('0') << std::setw(16) << random_number();
  }
  return name.str();
}

}  // namespace program
