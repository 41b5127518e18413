/// \file
/// ChatClient: an OpenAI-compatible endpoint, as a client sees it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// What an assistant's message says.
struct ChatReply {
  std::string text;
  std::vector<tooldecode::ToolCall> calls;
  Json message;                    ///< as it came
  Json messages = Json::array();   ///< to be sent back: the turns of the engine, then this one's
  Json response = Json::object();  ///< the whole of it, where it is no stream
};

/// An endpoint that does not answer as asked.
class EngineError : public std::runtime_error {
 public:
  /// \param status  0 where the network failed, or the answer is none
  EngineError(const std::string& what, int status, double retry_after = 0);

  [[nodiscard]] int status() const noexcept { return status_; }
  /// Seconds that the endpoint asks for.
  [[nodiscard]] double retry_after() const noexcept { return retry_after_; }
  /// Whether the same request may be answered later, or by another engine.
  [[nodiscard]] bool may_pass() const noexcept;

 private:
  int status_;
  double retry_after_;
};

/// What a stream tells of its reply while it comes about.
struct StreamListener {
  std::function<void(const std::string& id)> on_id{};  ///< of the response, before anything else
  /// The engine has gone on over calls: what a client would have sent back for them.
  std::function<void(const Json& messages, const std::vector<tooldecode::ToolCall>&)> on_cached{};
  /// The engine waits for outputs. False where it will not be told: the reply ends here.
  std::function<bool(const std::vector<tooldecode::ToolCall>&)> on_pending{};
};

/// For how long an endpoint is waited for.
struct Patience {
  std::chrono::milliseconds connect = std::chrono::seconds(5);
  std::chrono::milliseconds silence = std::chrono::minutes(10);  ///< between two parts of an answer
};

/// Asks one model at one address. Every member may run concurrently; a failure of the network or of
/// the other side is an EngineError that says which.
class ChatClient {
 public:
  /// \param url  `http://HOST[:PORT][/v1]`, or with https; Error{invalid_option} for anything else
  ChatClient(std::string url, std::string model, std::string key, const Patience& patience = {});

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] const std::string& model() const noexcept { return model_; }

  /// A chat completion; `request` lacks the model's name.
  ///
  /// \param session  that it is part of; routers keep those of one at one engine
  [[nodiscard]] ChatReply complete(Json request, std::stop_token stop,
                                   const std::string& session = {}) const;

  /// The same as a stream.
  [[nodiscard]] ChatReply follow(Json request, const StreamListener& listener, std::stop_token stop,
                                 const std::string& session = {}) const;

  /// Tells the engine what a call of a response would return; a failure where it does not keep it.
  void cache_output(const std::string& response_id, const tooldecode::ToolCall& call,
                    const std::string& output, double keep_alive, std::stop_token stop = {},
                    const std::string& session = {}) const;

 private:
  static constexpr std::size_t max_body = std::size_t{64} << 20;

  [[nodiscard]] ChatReply read_completion(const std::string& text) const;
  [[nodiscard]] Json read_object(const std::string& text) const;

  // Runs what reads an answer.
  template <class Read>
  void checked(Read read) const;

  std::string post(const std::string& path, const Json& body, std::stop_token stop,
                   const std::string& session) const;

  // Gives an answer of status 200 to `receive` in parts; another is an error.
  void send(const std::string& path, const Json& body, std::stop_token stop,
            const std::string& session, const std::function<bool(std::string_view)>& receive) const;

  std::string url_, host_, path_;
  std::string model_;
  std::string key_;
  Patience patience_;
};

}  // namespace program
