#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <program/chat_answer.hpp>

namespace program {

ChatAnswer::ChatAnswer(ChatService& service, const ChatRequest& request, const std::string& client,
                       std::function<void()> watch, double timeout)
    : service_(&service),
      watch_(std::move(watch)),
      deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(timeout))),
      with_usage_(request.include_usage),
      with_tokens_(request.log_probabilities),
      streams_calls_(request.streams_calls()),
      stop_tokens_(request.decode.end_tokens),
      session_(service.start(request, client, [this] { this->watch(); })),
      writer_(session_.id, session_.unique, request.model, std::time(nullptr), request.tools.all),
      choices_(request.choices, Choice{.text = session_.text}) {}

ChatAnswer::~ChatAnswer() {
  abandon();
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
  Usage used{.prompt = session_.prompt_tokens};
  for (std::size_t i = 0; i < replies.size(); ++i) {
    choices.push_back(choice_json(i, replies[i]));
    add_usage(replies[i], used);
  }
  return writer_.response(std::move(choices), used);
}

Exchange::Event ChatAnswer::next() {
  for (;;) {
    require_time();  // who reads slowly does not get more of it
    if (auto event = session_.events->take(std::chrono::milliseconds(50))) {
      if (const auto* reply = std::get_if<tooldecode::EngineReply>(&event->what)) {
        choices_[event->choice].ended = true;
        if (reply->cancelled) throw ApiError(503, "cancelled", "", "the request was cancelled");
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
  const auto& tokenizer = service_->assistant().tokenizer;
  const auto& last      = reply.turns.back();
  Json cached = Json::array(), tokens = Json::array();
  std::string content, reasoning;
  const auto read = [&](const AnswerText::Events& events) {
    for (const auto& event : events) {
      if (event.kind == Kind::text) content += event.text;
      if (event.kind == Kind::reasoning) reasoning += event.text;
    }
  };
  AnswerText text = session_.text;
  for (std::size_t i = 0; i < reply.turns.size(); ++i) {
    const auto& turn = reply.turns[i];
    text             = session_.text;
    for (const tooldecode::TokenId token : turn.output.tokens) read(text.push(token));
    read(text.finish());
    for (std::size_t t = 0; with_tokens_ && t < turn.output.tokens.size(); ++t) {
      tokens.push_back(token_json(tokenizer.vocabulary().bytes(turn.output.tokens[t]),
                                  turn.output.log_probabilities[t]));
    }
    if (turn.results.empty()) continue;
    for (const Json& call : writer_.cached_calls(index, i, turn)) cached.push_back(call);
  }
  const bool is_silent = content.empty() && !last.calls.empty();
  Json message{{"role", "assistant"}, {"content", is_silent ? Json(nullptr) : Json(content)}};
  if (!last.calls.empty()) {
    message["tool_calls"] = writer_.calls(index, reply.turns.size() - 1, last.calls);
  }
  if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
  if (!cached.empty()) message["cached_tool_calls"] = std::move(cached);
  const AnswerEnd end(last, text, stop_tokens_);
  return {{"index", index},
          {"message", std::move(message)},
          {"logprobs", ReplyWriter::log_probabilities(tokens)},
          {"finish_reason", end.reason},
          {"stop_reason", end.stop}};
}

void ChatAnswer::add_usage(const tooldecode::EngineReply& reply, Usage& usage) const {
  for (const tooldecode::EngineTurn& turn : reply.turns) {
    usage.completion += turn.output.tokens.size();
    if (turn.results.empty()) continue;
    usage.prompt += service_->assistant().result_tokens(turn.calls, turn.results).size();
  }
}

void ChatAnswer::stream(const std::function<void(const std::string&)>& send) {
  Usage used{.prompt = session_.prompt_tokens};
  const auto chunk = [&](std::size_t i, const Json& delta, const AnswerEnd* end = nullptr) {
    send(writer_.chunk(i, delta, std::exchange(choices_[i].tokens, Json::array()), end,
                       with_usage_));
  };
  const auto show = [&](std::size_t i, const AnswerText::Events& events) {
    for (const auto& event : events) {
      if (event.kind == Kind::text) chunk(i, {{"content", event.text}});
      if (event.kind == Kind::reasoning) chunk(i, {{"reasoning_content", event.text}});
      if (!streams_calls_) continue;
      const auto delta = writer_.calls_delta(i, choices_[i].turn, event, choices_[i].inputs);
      if (delta) chunk(i, {{"tool_calls", *delta}});
    }
  };
  for (std::size_t i = 0; i < choices_.size(); ++i)
    chunk(i, {{"role", "assistant"}, {"content", ""}});
  for (std::size_t left = choices_.size(); left > 0;) {
    const Exchange::Event event = next();
    const std::size_t i         = event.choice;
    Choice& choice              = choices_[i];
    if (const auto* token = std::get_if<tooldecode::TokenEvent>(&event.what)) {
      const auto bytes = service_->assistant().tokenizer.vocabulary().bytes(token->token);
      if (with_tokens_) choice.tokens.push_back(token_json(bytes, token->log_probability));
      show(i, choice.text.push(token->token));
    } else if (const auto* calls = std::get_if<Exchange::Calls>(&event.what)) {
      chunk(i, {{"pending_tool_calls", writer_.calls(i, choice.turn, *calls)}});
    } else if (const auto* cached = std::get_if<tooldecode::EngineTurn>(&event.what)) {
      show(i, choice.text.finish());
      chunk(i, {{"cached_tool_calls", writer_.cached_calls(i, choice.turn++, *cached)}});
      choice.text = session_.text;
    } else {
      show(i, choice.text.finish());
      const auto& reply = std::get<tooldecode::EngineReply>(event.what);
      const auto& last  = reply.turns.back();
      const Json list   = writer_.calls(i, choice.turn, last.calls);
      for (std::size_t c = 0; !streams_calls_ && c < list.size(); ++c) {
        Json entry{{"index", c}};
        entry.update(list[c]);
        chunk(i, {{"tool_calls", Json::array({entry})}});
      }
      const AnswerEnd end(last, choice.text, stop_tokens_);
      chunk(i, Json::object(), &end);
      add_usage(reply, used);
      --left;
    }
  }
  if (with_usage_) send(writer_.usage_chunk(used));
  send("data: [DONE]\n\n");
}

}  // namespace program
