#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/text/value_reader.hpp>

#include <httplib.h>
#include <program/chat_client.hpp>
#include <program/wire_call.hpp>

namespace program {

namespace detail {

std::vector<tooldecode::ToolCall> read_calls(const Json& list);

// Assembles a message from the chunks of a stream.
class StreamedMessage {
 public:
  StreamedMessage(const StreamListener& listener, ChatReply& reply)
      : listener_(&listener), reply_(&reply) {}

  // False if the rest is not needed.
  bool add(const Json& chunk);

  void end();

 private:
  bool add_delta(const Json& delta);

  // Parts of one call have the same index; the first has the name.
  void add_call(Json part);

  // A turn after which the engine continued, as its client would have sent it back.
  void add_cached(const Json& cached);

  [[nodiscard]] Json turn(const std::string& text) const;

  const StreamListener* listener_;
  ChatReply* reply_;
  bool has_id_ = false;
  std::string before_, text_, reasoning_;  // of the engine's turns; of the current turn
  Json list_   = Json::array();            // calls of the current turn
  Json calls_  = Json::array();            // calls of the reported turn
  Json cached_ = Json::array();
};

}  // namespace detail

template <class Read>
void ChatClient::checked(Read read) const {
  try {
    read();
  } catch (const EngineError& error) {
    throw EngineError(url_ + ": " + error.what(), error.status(), error.retry_after());
  } catch (const std::exception& error) {
    throw EngineError(url_ + ": not a chat completion: " + error.what(), 0);
  }
}

void ChatClient::send(const std::string& path, const Json& body, std::stop_token stop,
                      const std::string& session,
                      const std::function<bool(std::string_view)>& receive) const {
  httplib::Client client(host_);
  client.set_connection_timeout(patience_.connect);
  client.set_read_timeout(patience_.silence);
  client.set_write_timeout(patience_.silence);
  httplib::Request request;
  request.method  = "POST";
  request.path    = path;
  request.body    = json_text(body);
  request.headers = {{"Content-Type", "application/json"}};
  if (!key_.empty()) request.headers.emplace("Authorization", "Bearer " + key_);
  if (!session.empty()) request.headers.emplace("X-Session-Id", session);
  int status   = 0;
  double after = 0;
  std::string refusal;
  request.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    after  = std::strtod(response.get_header_value("Retry-After").c_str(), nullptr);
    return true;
  };
  request.content_receiver = [&](const char* part, std::size_t size, std::uint64_t, std::uint64_t) {
    if (status == 200) return receive(std::string_view(part, size));
    refusal.append(part, size);
    return refusal.size() <= max_body;
  };
  const std::stop_callback stopping(stop, [&client] { client.stop(); });
  const auto result = client.send(request);
  if (status != 0 && status != 200) {
    std::string why   = "status " + std::to_string(status);
    const Json answer = tooldecode::text::find_json(refusal).value_or(Json());
    if (answer.is_object() && answer.contains("error") && answer["error"].is_object()) {
      why += ": " + answer["error"].value("message", "");
    }
    throw EngineError(url_ + ": " + why, status, after);
  }
  if (!result) throw EngineError(url_ + ": " + httplib::to_string(result.error()), 0);
}

EngineError::EngineError(const std::string& what, int status, double retry_after)
    : std::runtime_error(what), status_(status), retry_after_(retry_after) {}

bool EngineError::may_pass() const noexcept {
  return status_ == 0 || status_ == 408 || status_ == 409 || status_ == 429 || status_ >= 500;
}

}  // namespace program

namespace program::detail {

std::vector<tooldecode::ToolCall> read_calls(const Json& list) {
  std::vector<tooldecode::ToolCall> calls;
  for (const Json& call : list) {
    const Json& function = call.at("function");
    calls.push_back({function.at("name").get<std::string>(),
                     read_arguments(function.at("arguments").string())});
  }
  return calls;
}

bool StreamedMessage::add(const Json& chunk) {
  if (const auto error = chunk.find("error"); error != chunk.end()) {
    const bool passes = error->is_object() && error->value("type", Json()) == "server_error";
    throw EngineError(
        error->is_object() ? error->value("message", std::string("an error")) : json_text(*error),
        passes ? 503 : 400);
  }
  if (!has_id_ && chunk.contains("id") && listener_->on_id) {
    listener_->on_id(chunk.at("id").get<std::string>());
  }
  has_id_ = true;
  for (const Json& choice : chunk.at("choices")) {
    if (choice.value("index", 0) != 0) continue;
    if (!add_delta(choice.at("delta"))) return false;
  }
  return true;
}

void StreamedMessage::end() {
  calls_        = std::move(list_);
  Json& message = reply_->message;
  message       = turn(text_);
  if (!reasoning_.empty()) message["reasoning_content"] = std::move(reasoning_);
  reply_->messages.push_back(message);
  reply_->text  = before_ + text_;
  reply_->calls = read_calls(calls_);
  if (!cached_.empty()) {
    message["content"] =
        reply_->text.empty() && !calls_.empty() ? Json(nullptr) : Json(reply_->text);
    message["cached_tool_calls"] = std::move(cached_);
  }
}

bool StreamedMessage::add_delta(const Json& delta) {
  const auto text_of = [&](const char* key) {
    const auto found = delta.find(key);
    return found != delta.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  text_ += text_of("content");
  reasoning_ += text_of("reasoning_content");
  if (const auto cached = delta.find("cached_tool_calls"); cached != delta.end()) {
    add_cached(*cached);
  }
  if (const auto pending = delta.find("pending_tool_calls"); pending != delta.end()) {
    if (listener_->on_pending && !listener_->on_pending(read_calls(*pending))) {
      list_ = *pending;
      return false;
    }
  }
  if (const auto calls = delta.find("tool_calls"); calls != delta.end() && calls->is_array()) {
    for (const Json& call : *calls) add_call(call);
  }
  return true;
}

void StreamedMessage::add_call(Json part) {
  constexpr std::size_t max_calls = 1024;
  const auto index                = part.value("index", list_.size());
  if (index > list_.size() || index >= max_calls) {
    throw std::runtime_error("the call of index " + std::to_string(index) + " has no beginning");
  }
  part.erase("index");
  if (index == list_.size()) {
    list_.push_back(std::move(part));
  } else if (part.contains("function") && part["function"].contains("arguments")) {
    auto& known = list_[index].at("function").at("arguments").string();
    known += part["function"]["arguments"].get<std::string>();
  }
}

void StreamedMessage::add_cached(const Json& cached) {
  calls_ = Json::array();
  for (const Json& call : cached) {
    calls_.push_back(
        {{"id", call.at("id")}, {"type", "function"}, {"function", call.at("function")}});
  }
  Json told = Json::array({turn(text_)});
  for (const Json& call : cached) {
    told.push_back({{"role", "tool"},
                    {"tool_call_id", call.at("id")},
                    {"content", call.at("output").get<std::string>()}});
    cached_.push_back(call);
  }
  before_ += std::exchange(text_, {});
  for (const Json& message : told) reply_->messages.push_back(message);
  if (listener_->on_cached) listener_->on_cached(reply_->messages, read_calls(calls_));
}

Json StreamedMessage::turn(const std::string& text) const {
  const bool is_silent = text.empty() && !calls_.empty();
  Json message{{"role", "assistant"}, {"content", is_silent ? Json(nullptr) : Json(text)}};
  if (!calls_.empty()) message["tool_calls"] = calls_;
  return message;
}

}  // namespace program::detail

namespace program {

ChatClient::ChatClient(std::string url, std::string model, std::string key,
                       const Patience& patience)
    : url_(std::move(url)), model_(std::move(model)), key_(std::move(key)), patience_(patience) {
  const std::size_t host = url_.find("://") + 3;
  const bool is_known    = url_.starts_with("http://") || url_.starts_with("https://");
  if (!is_known || url_.size() == host) {
    throw tooldecode::Error(tooldecode::Errc::invalid_option, url_,
                            "an address is http://HOST[:PORT][/PATH], or https");
  }
  const std::size_t slash = url_.find('/', host);
  host_                   = url_.substr(0, slash);
  if (slash != url_.npos) path_ = url_.substr(slash);
  while (path_.ends_with('/')) path_.pop_back();
}

ChatReply ChatClient::complete(Json request, std::stop_token stop,
                               const std::string& session) const {
  request["model"] = model_;
  return read_completion(post(path_ + "/chat/completions", request, std::move(stop), session));
}

ChatReply ChatClient::follow(Json request, const StreamListener& listener, std::stop_token stop,
                             const std::string& session) const {
  request["model"]  = model_;
  request["stream"] = true;
  ChatReply reply;
  detail::StreamedMessage message(listener, reply);
  std::string text;  // not parsed yet
  bool is_stream = false, is_whole = false, has_ended = false;
  const auto read = [&](std::string_view part) {
    if (is_whole) return true;
    text += part;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      std::string_view line = std::string_view(text).substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with("data:")) continue;
      is_stream = true;
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ', 5)));
      if (line == "[DONE]") return is_whole = true;
      if (!message.add(tooldecode::text::parse_json(line))) return false;
    }
    if (is_stream) text.erase(0, begin);
    if (text.size() > max_body) throw std::runtime_error("a line of the stream has no end");
    return true;
  };
  std::optional<EngineError> failure;
  const auto receive = [&](std::string_view part) {
    try {
      checked([&] { has_ended = !read(part); });
    } catch (const EngineError& error) {  // must not pass through the library
      failure   = error;
      has_ended = true;
    }
    return !has_ended;
  };
  try {
    send(path_ + "/chat/completions", request, std::move(stop), session, receive);
  } catch (const EngineError&) {
    if (!has_ended) throw;
  }
  if (failure) throw *std::move(failure);
  if (!is_stream) return read_completion(text);  // a server that does not stream
  if (!is_whole && !has_ended) throw EngineError(url_ + ": the stream broke off", 0);
  checked([&] { message.end(); });
  return reply;
}

void ChatClient::cache_output(const std::string& response_id, const tooldecode::ToolCall& call,
                              const std::string& output, double keep_alive, std::stop_token stop,
                              const std::string& session) const {
  // The endpoint is beside the versioned ones.
  const Json entry{{"name", call.name},
                   {"params", call.arguments},
                   {"output", output},
                   {"keep_alive", keep_alive}};
  const Json answer = read_object(
      post("/cache-tool-output/" + response_id, Json::array({entry}), std::move(stop), session));
  if (answer.value("cached", Json()) != 1) {
    throw EngineError(url_ + ": the output of " + call.name + " was not kept", 200);
  }
}

ChatReply ChatClient::read_completion(const std::string& text) const {
  ChatReply reply;
  reply.response = read_object(text);
  checked([&] {
    reply.message = reply.response.at("choices").at(0).at("message");
    if (const auto said = reply.message.find("content");
        said != reply.message.end() && said->is_string()) {
      reply.text = said->get<std::string>();
    }
    if (const auto calls = reply.message.find("tool_calls");
        calls != reply.message.end() && calls->is_array()) {
      reply.calls = detail::read_calls(*calls);
    }
    reply.messages.push_back(reply.message);
  });
  return reply;
}

Json ChatClient::read_object(const std::string& text) const {
  Json answer;
  try {
    answer = tooldecode::text::parse_json(text);
  } catch (const tooldecode::Error&) {  // reported below
  }
  if (!answer.is_object()) throw EngineError(url_ + ": the answer is not a JSON object", 0);
  return answer;
}

std::string ChatClient::post(const std::string& path, const Json& body, std::stop_token stop,
                             const std::string& session) const {
  std::string text;
  send(path, body, std::move(stop), session, [&](std::string_view part) {
    text += part;
    return text.size() <= max_body;
  });
  return text;
}

}  // namespace program
