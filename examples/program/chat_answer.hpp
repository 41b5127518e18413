/// \file
/// ChatAnswer: handles one chat request from submission to answer, as a whole or as a stream.
#pragma once

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

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/openai.hpp>
#include <program/reply.hpp>
#include <program/server.hpp>

namespace program {

/// The JSON of the arguments of a turn's calls, as the model wrote it. So a whole answer has
/// exactly the text that a stream has in pieces.
class WrittenArguments {
 public:
  void add(const AnswerText::Events& events);
  [[nodiscard]] std::vector<std::string> of(std::span<const tooldecode::ToolCall> calls) const;

 private:
  std::vector<std::string> texts_;
};

/// Submits a request to a ChatService and writes the answer. A request that is abandoned before its
/// end is cancelled.
class ChatAnswer {
 public:
  /// \param client   whose share of the service it uses
  /// \param watch    called while there is nothing to write; throws if the client is gone
  /// \param timeout  seconds; then ApiError{504}
  ChatAnswer(ChatService& service, ChatRequest request, const std::string& client,
             std::function<void()> watch, double timeout);
  ChatAnswer(const ChatAnswer&)            = delete;
  ChatAnswer& operator=(const ChatAnswer&) = delete;
  ~ChatAnswer();

  /// Response headers that say how the request was read.
  [[nodiscard]] std::vector<std::pair<const char*, std::string>> headers() const;

  void abandon();

  [[nodiscard]] std::string whole();

  /// The response as server-sent events, each as soon as possible.
  void stream(const std::function<void(const std::string&)>& send);
  /// The event that ends a stream which failed.
  [[nodiscard]] std::string failed(const ApiError& error) const { return writer_->failed(error); }

 private:
  using Clock = std::chrono::steady_clock;
  using Kind  = tooldecode::StreamEvent::Kind;

  struct Choice {
    AnswerText text;
    std::size_t turn = 0;
    CustomInputs inputs{};  // of calls that are streamed; single turn only
    WrittenArguments written{};
    std::string said{};           // text of the turn, before its calls
    Json tokens = Json::array();  // with log-probabilities, not streamed yet
    bool ended  = false;
  };

  [[nodiscard]] ChatSession start(const std::string& client);

  [[nodiscard]] Exchange::Event next();

  void watch() const;
  void require_time() const;

  [[nodiscard]] Json choice_json(std::size_t index, const tooldecode::EngineReply& reply) const;

  void add_usage(const tooldecode::EngineReply& reply, Usage& usage) const;

  ChatService* service_;
  ChatRequest request_;
  std::function<void()> watch_;
  Clock::time_point deadline_;
  ChatSession session_;
  std::unique_ptr<ReplyWriter> writer_;
  std::vector<Choice> choices_;
};

}  // namespace program
