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
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/core/types.hpp>
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
  /// \param client   whose share of the service it is
  /// \param watch    called while there is nothing to write; throws where nobody waits any more
  /// \param timeout  seconds; ApiError{504} from then on
  ChatAnswer(ChatService& service, const ChatRequest& request, const std::string& client,
             std::function<void()> watch, double timeout);
  ChatAnswer(const ChatAnswer&)            = delete;
  ChatAnswer& operator=(const ChatAnswer&) = delete;
  ~ChatAnswer();

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
    Json tokens = Json::array();  // with their log-probabilities, not streamed yet
    bool ended  = false;
  };

  [[nodiscard]] Exchange::Event next();

  // Throws where it is not worth it to wait on.
  void watch() const;
  void require_time() const;

  [[nodiscard]] Json choice_json(std::size_t index, const tooldecode::EngineReply& reply) const;

  void add_usage(const tooldecode::EngineReply& reply, Usage& usage) const;

  ChatService* service_;
  std::function<void()> watch_;
  Clock::time_point deadline_;
  bool with_usage_;
  bool with_tokens_;  // with their log-probabilities
  bool streams_calls_;
  std::vector<tooldecode::TokenId> stop_tokens_;  // the request's
  ChatSession session_;
  ReplyWriter writer_;
  std::vector<Choice> choices_;
};

}  // namespace program
