/// \file
/// ChatClient: an OpenAI-compatible endpoint, as a client sees it.
#pragma once

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/value_reader.hpp>

#include <httplib.h>
#include <program/fields.hpp>
#include <program/json.hpp>

namespace program {

/// What an assistant's message says.
struct ChatReply {
  std::string text;
  std::vector<tooldecode::ToolCall> calls;
  Json message;   ///< as it came, to be sent back
  Json response;  ///< the whole of it
};

/// Asks one model at one address. Every member may run concurrently; a failure of the network or of
/// the other side is a std::runtime_error that says which.
class ChatClient {
 public:
  /// \param url  `http://HOST[:PORT][/v1]`, or with https; Error{invalid_option} for anything else
  ChatClient(std::string url, std::string model, std::string key)
      : url_(std::move(url)), model_(std::move(model)), key_(std::move(key)) {
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

  [[nodiscard]] const std::string& model() const noexcept { return model_; }

  /// A chat completion; `request` lacks the model's name.
  [[nodiscard]] ChatReply complete(Json request, std::stop_token stop) const {
    request["model"] = model_;
    ChatReply reply;
    reply.response = post(path_ + "/chat/completions", request, std::move(stop));
    try {
      reply.message = reply.response.at("choices").at(0).at("message");
      if (const auto text = reply.message.find("content");
          text != reply.message.end() && text->is_string()) {
        reply.text = text->get<std::string>();
      }
      for (const auto& call : reply.message.value("tool_calls", Json::array())) {
        const auto& function  = call.at("function");
        const auto& arguments = function.at("arguments").get_ref<const std::string&>();
        reply.calls.push_back(
            {function.at("name").get<std::string>(),
             tooldecode::tools::parse_json(arguments.empty() ? "{}" : arguments)});
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(url_ + ": not a chat completion: " + error.what());
    }
    return reply;
  }

  /// Tells the engine what a call of a response would return; a failure where it does not keep it.
  void cache_output(const std::string& response_id, const tooldecode::ToolCall& call,
                    const std::string& output, double keep_alive) const {
    // The endpoint stands beside the versioned ones.
    const Json answer = post("/cache-tool-output/" + response_id,
                             Json::array({{{"name", call.name},
                                           {"params", call.arguments},
                                           {"output", output},
                                           {"keep_alive", keep_alive}}}),
                             {});
    if (answer.value("cached", Json()) != 1) {
      throw std::runtime_error(url_ + ": the output of " + call.name + " was not kept");
    }
  }

 private:
  Json post(const std::string& path, const Json& body, std::stop_token stop) const {
    httplib::Client client(host_);
    client.set_read_timeout(std::chrono::minutes(10));
    httplib::Headers headers;
    if (!key_.empty()) headers.emplace("Authorization", "Bearer " + key_);
    const std::stop_callback stopping(stop, [&client] { client.stop(); });
    const auto result = client.Post(path, headers, json_text(body), "application/json");
    if (!result) throw std::runtime_error(url_ + ": " + httplib::to_string(result.error()));
    auto answer = Json::parse(result->body, nullptr, false);
    if (result->status != 200) {
      std::string why = "status " + std::to_string(result->status);
      if (answer.is_object() && answer.contains("error") && answer["error"].is_object()) {
        why += ": " + answer["error"].value("message", "");
      }
      throw std::runtime_error(url_ + ": " + why);
    }
    if (!answer.is_object()) throw std::runtime_error(url_ + ": the answer is not a JSON object");
    return answer;
  }

  std::string url_, host_, path_;
  std::string model_;
  std::string key_;
};

}  // namespace program
