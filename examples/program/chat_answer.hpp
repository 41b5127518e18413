/// \file
/// ChatAnswer: one chat request from its submission to its answer, whole or as a stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
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

/// The JSON of the arguments of a turn's calls, as the model wrote it: a whole answer has the very
/// text that a stream has in pieces.
class WrittenArguments {
 public:
  void add(const AnswerText::Events& events);
  /// Of each of the turn's calls.
  [[nodiscard]] std::vector<std::string> of(std::span<const tooldecode::ToolCall> calls) const;

 private:
  std::vector<std::string> texts_;
};

/// Asks a ChatService and writes what it says. A request whose answer is not waited for to its end
/// is cancelled.
class ChatAnswer {
 public:
  /// \param client   whose share of the service it is
  /// \param watch    called while there is nothing to write; throws where nobody waits any more
  /// \param timeout  seconds; ApiError{504} from then on
  ChatAnswer(ChatService& service, ChatRequest request, const std::string& client,
             std::function<void()> watch, double timeout);
  ChatAnswer(const ChatAnswer&)            = delete;
  ChatAnswer& operator=(const ChatAnswer&) = delete;
  ~ChatAnswer();

  /// What the head of the response says of how the request was read.
  [[nodiscard]] std::vector<std::pair<const char*, std::string>> headers() const;

  /// Cancels what has not ended of the request.
  void abandon();

  /// The response, once it is whole.
  [[nodiscard]] std::string whole();

  /// The response as server-sent events, each as soon as it can be.
  void stream(const std::function<void(const std::string&)>& send);

 private:
  using Clock = std::chrono::steady_clock;
  using Kind  = tooldecode::StreamEvent::Kind;

  // One of the answers that were asked for.
  struct Choice {
    AnswerText text;              // of the present turn
    std::size_t turn = 0;         // streamed so far
    CustomInputs inputs{};        // of calls that are streamed: of a lone turn
    WrittenArguments written{};   // of the present turn
    Json tokens = Json::array();  // with their log-probabilities, not streamed yet
    bool ended  = false;
  };

  // Relaxes tools that cannot be enforced, where the request allows it.
  [[nodiscard]] ChatSession start(const std::string& client);

  [[nodiscard]] Exchange::Event next();

  // Throws where it is not worth it to wait on.
  void watch() const;
  void require_time() const;

  [[nodiscard]] Json choice_json(std::size_t index, const tooldecode::EngineReply& reply) const;

  void add_usage(const tooldecode::EngineReply& reply, Usage& usage) const;

  ChatService* service_;
  ChatRequest request_;
  std::function<void()> watch_;
  Clock::time_point deadline_;
  ChatSession session_;
  ReplyWriter writer_;
  std::vector<Choice> choices_;
};

}  // namespace program
