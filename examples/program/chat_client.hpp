/// \file
/// ChatClient: a client of an OpenAI-compatible endpoint.
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

struct ChatReply {
  std::string text;
  std::vector<tooldecode::ToolCall> calls;
  Json message;                    ///< as received
  Json messages = Json::array();   ///< to send back: the engine's turns, then this message
  Json response = Json::object();  ///< the whole response, unless it is a stream
};

class EngineError : public std::runtime_error {
 public:
  /// \param status  0 if the network failed or the answer is malformed
  EngineError(const std::string& what, int status, double retry_after = 0);

  [[nodiscard]] int status() const noexcept { return status_; }
  /// Seconds that the endpoint asks to wait.
  [[nodiscard]] double retry_after() const noexcept { return retry_after_; }
  /// Whether the same request may succeed later, or on another engine.
  [[nodiscard]] bool may_pass() const noexcept;

 private:
  int status_;
  double retry_after_;
};

struct StreamListener {
  std::function<void(const std::string& id)> on_id{};  ///< response id, before anything else
  /// The engine continued after cached results; `messages` are what a client would have sent back.
  std::function<void(const Json& messages, const std::vector<tooldecode::ToolCall>&)> on_cached{};
  /// The engine waits for outputs. Returns false if it will not get them: the reply then ends.
  std::function<bool(const std::vector<tooldecode::ToolCall>&)> on_pending{};
};

struct Patience {
  std::chrono::milliseconds connect = std::chrono::seconds(5);
  std::chrono::milliseconds silence = std::chrono::minutes(10);  ///< between two parts of an answer
};

/// Asks one model at one address. Every member may run concurrently. A failure of the network or
/// the server is an EngineError that says which.
class ChatClient {
 public:
  /// \param url  `http://HOST[:PORT][/v1]`, or https; Error{invalid_option} for anything else
  ChatClient(std::string url, std::string model, std::string key, const Patience& patience = {});

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] const std::string& model() const noexcept { return model_; }

  /// A chat completion; `request` lacks the model's name.
  ///
  /// \param session  of the request; routers send one session to one engine
  [[nodiscard]] ChatReply complete(Json request, std::stop_token stop,
                                   const std::string& session = {}) const;

  /// As complete, but streamed.
  [[nodiscard]] ChatReply follow(Json request, const StreamListener& listener, std::stop_token stop,
                                 const std::string& session = {}) const;

  /// Puts a call's output into the engine's cache for a response; fails if the engine does not keep
  /// it.
  void cache_output(const std::string& response_id, const tooldecode::ToolCall& call,
                    const std::string& output, double keep_alive, std::stop_token stop = {},
                    const std::string& session = {}) const;

 private:
  static constexpr std::size_t max_body = std::size_t{64} << 20;

  [[nodiscard]] ChatReply read_completion(const std::string& text) const;
  [[nodiscard]] Json read_object(const std::string& text) const;

  template <class Read>
  void checked(Read read) const;

  std::string post(const std::string& path, const Json& body, std::stop_token stop,
                   const std::string& session) const;

  // Passes an answer with status 200 to `receive` in parts; other statuses are errors.
  void send(const std::string& path, const Json& body, std::stop_token stop,
            const std::string& session, const std::function<bool(std::string_view)>& receive) const;

  std::string url_, host_, path_;
  std::string model_;
  std::string key_;
  Patience patience_;
};

}  // namespace program
