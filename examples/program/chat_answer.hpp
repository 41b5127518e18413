/// \file
/// ChatAnswer: one chat request from its submission to its answer, whole or as a stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/openai.hpp>
#include <program/reply.hpp>
#include <program/server.hpp>

namespace program {

/// Asks a ChatService and writes what it says. A request whose answer is not waited for to its end
/// is cancelled.
class ChatAnswer {
 public:
  /// \param watch    called while there is nothing to write; throws where nobody waits any more
  /// \param timeout  seconds; ApiError{504} from then on
  ChatAnswer(ChatService& service, const ChatRequest& request, std::function<void()> watch,
             double timeout)
      : service_(&service),
        watch_(std::move(watch)),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(timeout))),
        with_usage_(request.include_usage),
        begin_(service.format(), request),
        session_(service.start(request)),
        writer_(session_.id, session_.unique, request.model, std::time(nullptr)) {}
  ChatAnswer(const ChatAnswer&)            = delete;
  ChatAnswer& operator=(const ChatAnswer&) = delete;
  ~ChatAnswer() { abandon(); }

  /// Cancels the request, unless it has ended.
  void abandon() {
    if (!std::exchange(ended_, true)) session_.cancel();
  }

  /// The response, once it is whole.
  [[nodiscard]] std::string whole() {
    for (;;) {
      const Exchange::Event event = next();
      if (const auto* reply = std::get_if<tooldecode::EngineReply>(&event)) return whole(*reply);
    }
  }

  /// The response as server-sent events, each as soon as it can be.
  template <class Send>
  void stream(Send send) {
    const auto chunk = [&](const Json& delta, const char* finish = nullptr) {
      send(writer_.chunk(delta, finish, with_usage_));
    };
    const auto content = [&](const std::string& text) {
      if (!text.empty()) chunk({{"content", text}});
    };
    AnswerText text  = begin_;
    std::size_t turn = 0;
    chunk({{"role", "assistant"}, {"content", ""}});
    for (;;) {
      const Exchange::Event event = next();
      if (const auto* token = std::get_if<tooldecode::TokenId>(&event)) {
        content(text.push(service_->assistant().tokenizer.vocabulary().bytes(*token)));
      } else if (const auto* calls = std::get_if<Exchange::Calls>(&event)) {
        chunk({{"pending_tool_calls", writer_.calls(turn, *calls)}});
      } else if (const auto* cached = std::get_if<tooldecode::EngineTurn>(&event)) {
        content(text.finish());
        chunk({{"cached_tool_calls", writer_.cached_calls(turn++, *cached)}});
        text = begin_;
      } else {
        content(text.finish());
        const auto& reply = std::get<tooldecode::EngineReply>(event);
        const auto& last  = reply.turns.back();
        const Json list   = writer_.calls(turn, last.calls);
        for (std::size_t i = 0; i < list.size(); ++i) {
          Json entry{{"index", i}};
          entry.update(list[i]);
          chunk({{"tool_calls", Json::array({entry})}});
        }
        chunk(Json::object(), finish_reason(last, text));
        if (with_usage_) send(writer_.usage_chunk(usage(reply)));
        return send("data: [DONE]\n\n");
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Exchange::Event next() {
    for (;;) {
      if (auto event = session_.events->take(std::chrono::milliseconds(50))) {
        if (const auto* reply = std::get_if<tooldecode::EngineReply>(&*event)) {
          ended_ = true;
          if (reply->cancelled) throw ApiError(503, "cancelled", "", "the request was cancelled");
        }
        return std::move(*event);
      }
      watch_();
      if (Clock::now() >= deadline_) {
        throw ApiError(504, "timeout", "", "the answer took too long");
      }
    }
  }

  [[nodiscard]] std::string whole(const tooldecode::EngineReply& reply) const {
    const auto& last = reply.turns.back();
    Json cached      = Json::array();
    std::string content;
    AnswerText text = begin_;
    for (std::size_t i = 0; i < reply.turns.size(); ++i) {
      const auto& turn = reply.turns[i];
      text             = begin_;
      content += text.push(service_->assistant().tokenizer.decode(turn.output.tokens));
      content += text.finish();
      if (turn.results.empty()) continue;
      for (const Json& call : writer_.cached_calls(i, turn)) cached.push_back(call);
    }
    const bool is_silent = content.empty() && !last.calls.empty();
    Json message{{"role", "assistant"}, {"content", is_silent ? Json(nullptr) : Json(content)}};
    if (!last.calls.empty()) {
      message["tool_calls"] = writer_.calls(reply.turns.size() - 1, last.calls);
    }
    if (!cached.empty()) message["cached_tool_calls"] = std::move(cached);
    return writer_.response(message, finish_reason(last, text), usage(reply));
  }

  [[nodiscard]] Usage usage(const tooldecode::EngineReply& reply) const {
    Usage usage{.prompt = session_.prompt_tokens};
    for (const tooldecode::EngineTurn& turn : reply.turns) {
      usage.completion += turn.output.tokens.size();
      if (turn.results.empty()) continue;
      usage.prompt += service_->assistant().result_tokens(turn.calls, turn.results).size();
    }
    return usage;
  }

  ChatService* service_;
  std::function<void()> watch_;
  Clock::time_point deadline_;
  bool with_usage_;
  bool ended_ = false;
  AnswerText begin_;  // of each turn
  ChatSession session_;
  ReplyWriter writer_;
};

}  // namespace program
