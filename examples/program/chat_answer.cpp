#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tooldecode/core/error.hpp>

#include <program/chat_answer.hpp>
#include <program/chat_writer.hpp>
#include <program/completion_writer.hpp>
#include <program/readings.hpp>
#include <program/response_writer.hpp>

namespace program {

namespace {

// Members of every answer where tools are not enforced as they are documented.
Json relaxed_json(const ChatRequest& request, const ChatSession& session) {
  Json list = Json::array();
  for (const auto& [name, place, why, outcome] :
       unenforced_places(request.tools.documents, session.tools)) {
    list.push_back({{"name", name}, {"param", place}, {"reason", why}, {"outcome", outcome}});
  }
  return list.empty() ? Json::object() : Json{{"relaxed_tools", std::move(list)}};
}

std::unique_ptr<ReplyWriter> make_writer(const ChatRequest& request, const ChatSession& session) {
  ReplyHead head{.id      = session.id,
                 .unique  = session.unique,
                 .model   = request.model,
                 .created = std::time(nullptr),
                 .tools   = session.tools,
                 .hosted  = request.hosted,
                 .notes   = relaxed_json(request, session)};
  if (request.api == Api::responses) {
    return std::make_unique<ResponseWriter>(std::move(head), request.echo);
  }
  if (request.api == Api::completions) {
    return std::make_unique<CompletionWriter>(std::move(head), request.include_usage);
  }
  return std::make_unique<ChatWriter>(std::move(head), request.include_usage);
}

}  // namespace

void WrittenArguments::add(const AnswerText::Events& events) {
  using Kind = tooldecode::StreamEvent::Kind;
  for (const tooldecode::StreamEvent& event : events) {
    if (event.kind == Kind::call_begin) texts_.emplace_back();
    if (event.kind == Kind::arguments) texts_.back() += event.text;
  }
}

std::vector<std::string> WrittenArguments::of(std::span<const tooldecode::ToolCall> calls) const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    texts.push_back(i < texts_.size() ? texts_[i] : json_text(calls[i].arguments));
  }
  return texts;
}

ChatAnswer::ChatAnswer(ChatService& service, ChatRequest request, const std::string& client,
                       std::function<void()> watch, double timeout)
    : service_(&service),
      request_(std::move(request)),
      watch_(std::move(watch)),
      deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(timeout))),
      session_(start(client)),
      writer_(make_writer(request_, session_)),
      choices_(request_.choices, Choice{.text = session_.first_text}) {}

ChatAnswer::~ChatAnswer() {
  abandon();
}

ChatSession ChatAnswer::start(const std::string& client) {
  request_.keep_variables(
      [this](const std::string& name) { return service_->assistant().takes(name); });
  try {
    return service_->start(request_, client, [this] { watch(); });
  } catch (const tooldecode::Error& error) {
    const std::string key(dialogue_key(request_.api));
    throw ApiError(400, "invalid_value", key, key + ": " + error.what());
  }
}

std::vector<std::pair<const char*, std::string>> ChatAnswer::headers() const {
  std::string ignored, relaxed;
  const auto add = [](std::string& list, const std::string& name) {
    list += (list.empty() ? "" : ", ") + name;
  };
  for (const std::string& name : request_.ignored) add(ignored, name);
  std::string last;  // a tool may have several
  for (const UnenforcedPlace& place : unenforced_places(request_.tools.documents, session_.tools)) {
    std::string tool = place.param.substr(0, place.param.find(']') + 1);
    if (std::exchange(last, tool) != tool) add(relaxed, tool);
  }
  std::vector<std::pair<const char*, std::string>> headers;
  if (!ignored.empty()) headers.emplace_back("X-Tooldecode-Ignored", ignored);
  if (!relaxed.empty()) headers.emplace_back("X-Tooldecode-Relaxed", relaxed);
  const std::string readings = unexpected_readings(session_.tools);
  if (!readings.empty()) headers.emplace_back("X-Tooldecode-Readings", readings);
  return headers;
}

void ChatAnswer::abandon() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (!std::exchange(choices_[i].ended, true)) session_.cancel[i]();
  }
}

std::string ChatAnswer::whole() {
  std::vector<tooldecode::EngineReply> replies(choices_.size());
  for (std::size_t left = choices_.size(); left > 0;) {
    Exchange::Event event = next();
    auto* reply           = std::get_if<tooldecode::EngineReply>(&event.what);
    if (reply == nullptr) continue;
    replies[event.choice] = std::move(*reply);
    --left;
  }
  Json choices = Json::array();
  Usage used{.prompt = session_.prompt_tokens, .cached = session_.prompt_tokens};
  for (std::size_t i = 0; i < replies.size(); ++i) {
    choices.push_back(choice_json(i, replies[i]));
    add_usage(replies[i], used);
  }
  return writer_->response(std::move(choices), used);
}

Exchange::Event ChatAnswer::next() {
  for (;;) {
    require_time();  // a slow reader gets no extra time
    if (auto event = session_.events->take(std::chrono::milliseconds(50))) {
      if (const auto* reply = std::get_if<tooldecode::EngineReply>(&event->what)) {
        choices_[event->choice].ended = true;
        if (reply->cancelled) throw ApiError(503, "cancelled", "", "the request was cancelled");
        if (reply->error) {  // for example a mask past its budget
          throw ApiError(422, "answer_failed", "", reply->error->what());
        }
      }
      return std::move(*event);
    }
    watch();
  }
}

void ChatAnswer::watch() const {
  watch_();
  require_time();
}

void ChatAnswer::require_time() const {
  if (Clock::now() >= deadline_) throw ApiError(504, "timeout", "", "the answer took too long");
}

Json ChatAnswer::choice_json(std::size_t index, const tooldecode::EngineReply& reply) const {
  const auto& vocabulary = service_->assistant().tokenizer.vocabulary();
  const auto& last       = reply.turns.back();
  Json cached = Json::array(), tokens = Json::array(), parts = Json::array();
  std::string content, reasoning, said, thought;  // in all, and in a turn
  WrittenArguments written;
  const auto read = [&](const AnswerText::Events& events) {
    written.add(events);
    for (const auto& event : events) {
      if (event.kind == Kind::text) said += event.text;
      if (event.kind == Kind::reasoning) thought += event.text;
    }
  };
  AnswerText text = session_.first_text;
  for (std::size_t i = 0; i < reply.turns.size(); ++i) {
    const auto& turn = reply.turns[i];
    text             = session_.text(i);
    written          = {};
    for (const tooldecode::TokenId token : turn.output.tokens) read(text.push(token));
    read(text.finish());
    content += said;
    reasoning += thought;
    if (!thought.empty()) {
      parts.push_back({{"reasoning_content", std::exchange(thought, {})}});
    }
    const std::string before = std::exchange(said, {});
    if (!before.empty()) parts.push_back({{"content", before}});
    const tooldecode::Output& out = turn.output;
    for (std::size_t t = 0; request_.log_probabilities && t < out.tokens.size(); ++t) {
      std::span<const tooldecode::LikelyToken> likeliest;
      if (!out.likeliest.empty()) likeliest = out.likeliest[t];
      tokens.push_back(token_json(vocabulary, out.tokens[t], out.log_probabilities[t], likeliest));
    }
    if (turn.results.empty()) continue;
    Json done = writer_->cached_calls(index, i, turn, written.of(turn.calls), before);
    for (const Json& call : done) cached.push_back(call);
    parts.push_back({{"cached_tool_calls", std::move(done)}});
  }
  const auto left      = writer_->client_calls(last);
  const bool is_silent = content.empty() && !last.calls.empty();
  Json message{{"role", "assistant"}, {"content", is_silent ? Json(nullptr) : Json(content)}};
  if (!left.empty()) {
    message["tool_calls"] = writer_->calls(index, reply.turns.size() - 1, left, written.of(left));
  }
  if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
  if (!cached.empty()) message["cached_tool_calls"] = std::move(cached);
  const AnswerEnd end(reply, left, text, request_.decode.end_tokens);
  Json choice{{"index", index},
              {"message", std::move(message)},
              {"logprobs", log_probabilities_json(tokens)},
              {"finish_reason", end.reason},
              {"stop_reason", end.stop}};
  if (!end.votes.empty()) choice["consistency"] = end.votes;
  if (request_.api == Api::responses) choice["parts"] = std::move(parts);
  return choice;
}

void ChatAnswer::add_usage(const tooldecode::EngineReply& reply, Usage& usage) const {
  for (std::size_t i = 0; i < reply.turns.size(); ++i) {
    const tooldecode::EngineTurn& turn = reply.turns[i];
    usage.completion += turn.output.tokens.size();
    // Counting walks all tokens once more.
    if (session_.may_reason) {
      usage.reasoning += session_.text(i).reasoning_tokens(turn.output.tokens);
    }
    usage.prompt += turn.more.size();
  }
  // The choices have one prompt, which counts once.
  usage.cached = std::min(usage.cached, reply.turns.front().output.reused_tokens);
}

void ChatAnswer::stream(const std::function<void(const std::string&)>& send) {
  const bool streams_calls = request_.streams_calls();
  const auto& vocabulary   = service_->assistant().tokenizer.vocabulary();
  Usage used{.prompt = session_.prompt_tokens, .cached = session_.prompt_tokens};
  const auto chunk = [&](std::size_t i, const Json& delta, const AnswerEnd* end = nullptr) {
    const std::string events =
        writer_->chunk(i, delta, std::exchange(choices_[i].tokens, Json::array()), end);
    if (!events.empty()) send(events);
  };
  const auto show = [&](std::size_t i, const AnswerText::Events& events) {
    choices_[i].written.add(events);
    for (const auto& event : events) {
      if (event.kind == Kind::text) {
        choices_[i].said += event.text;
        chunk(i, {{"content", event.text}});
      }
      if (event.kind == Kind::reasoning) chunk(i, {{"reasoning_content", event.text}});
      if (!streams_calls) continue;
      const auto delta = writer_->calls_delta(i, choices_[i].turn, event, choices_[i].inputs);
      if (delta) chunk(i, {{"tool_calls", *delta}});
    }
  };
  if (const std::string events = writer_->begin(choices_.size()); !events.empty()) send(events);
  for (std::size_t left = choices_.size(); left > 0;) {
    const Exchange::Event event = next();
    const std::size_t i         = event.choice;
    Choice& choice              = choices_[i];
    if (const auto* token = std::get_if<tooldecode::TokenEvent>(&event.what)) {
      if (request_.log_probabilities) {
        choice.tokens.push_back(
            token_json(vocabulary, token->token, token->log_probability, token->likeliest));
      }
      show(i, choice.text.push(token->token));
    } else if (const auto* calls = std::get_if<Exchange::Calls>(&event.what)) {
      AnswerText whole         = choice.text;
      WrittenArguments written = choice.written;
      written.add(whole.finish());
      chunk(i,
            {{"pending_tool_calls", writer_->calls(i, choice.turn, *calls, written.of(*calls))}});
    } else if (const auto* cached = std::get_if<tooldecode::EngineTurn>(&event.what)) {
      show(i, choice.text.finish());
      chunk(i, {{"cached_tool_calls",
                 writer_->cached_calls(i, choice.turn++, *cached, choice.written.of(cached->calls),
                                       std::exchange(choice.said, {}))}});
      choice.text    = session_.text(choice.turn);
      choice.written = {};
    } else {
      show(i, choice.text.finish());
      const auto& reply = std::get<tooldecode::EngineReply>(event.what);
      const auto unrun  = writer_->client_calls(reply.turns.back());
      const Json list   = writer_->calls(i, choice.turn, unrun, choice.written.of(unrun));
      for (std::size_t c = 0; !streams_calls && c < list.size(); ++c) {
        Json entry{{"index", c}};
        entry.update(list[c]);
        chunk(i, {{"tool_calls", Json::array({entry})}});
      }
      const AnswerEnd end(reply, unrun, choice.text, request_.decode.end_tokens);
      chunk(i, Json::object(), &end);
      add_usage(reply, used);
      --left;
    }
  }
  send(writer_->end(used));
}

}  // namespace program
