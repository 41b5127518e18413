/// \file
/// The wire of answers: text that may be shown so far, messages, chunks of a stream, usage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/decode/output.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/formats.hpp>
#include <program/openai.hpp>
#include <tooldecode/text/stop_finder.hpp>

namespace program {

/// The part of a turn's text that is content, as soon as it is known to be: neither calls nor what
/// may turn out to begin them, nor white space before them.
class ContentStream {
 public:
  /// \param delimiters  what opens calls; none where the turn cannot make any
  explicit ContentStream(std::vector<CallDelimiter> delimiters)
      : delimiters_(std::move(delimiters)) {}

  [[nodiscard]] std::string push(std::string_view bytes) {
    if (in_calls_) return {};
    if (delimiters_.empty()) return utf8_.push(bytes);
    held_ += bytes;
    if (!begun_) {
      const std::size_t first = held_.find_first_not_of(" \t\r\n");
      if (first == std::string::npos) return {};
      const std::string_view rest = std::string_view(held_).substr(first);
      bool may_begin              = false;
      for (const CallDelimiter& delimiter : delimiters_) {
        if (rest.starts_with(delimiter.text)) return open_calls();
        may_begin = may_begin || delimiter.text.starts_with(rest);
      }
      if (may_begin) return {};
      begun_ = true;
    }
    std::size_t opening = std::string::npos, beginning = 0;
    for (const CallDelimiter& delimiter : delimiters_) {
      if (delimiter.only_at_start) continue;
      opening            = std::min(opening, held_.find(delimiter.text));
      std::size_t length = std::min(held_.size(), delimiter.text.size() - 1);
      while (!held_.ends_with(std::string_view(delimiter.text).substr(0, length))) --length;
      beginning = std::max(beginning, length);
    }
    if (opening != std::string::npos) {
      held_.resize(opening);
      return open_calls(std::exchange(held_, {}));
    }
    const std::string known = held_.substr(0, held_.size() - beginning);
    held_.erase(0, known.size());
    return utf8_.push(known);
  }
  /// The rest, when the turn has ended.
  [[nodiscard]] std::string finish() {
    return in_calls_ ? std::string() : utf8_.push(std::exchange(held_, {})) + utf8_.finish();
  }

 private:
  [[nodiscard]] std::string open_calls(std::string_view before = {}) {
    in_calls_ = true;
    return utf8_.push(before) + utf8_.finish();
  }

  std::vector<CallDelimiter> delimiters_;
  Utf8Stream utf8_;
  std::string held_;
  bool begun_    = false;  // with what is no white space
  bool in_calls_ = false;
};

/// The delimiters that open calls in a turn; none where it cannot make any.
inline std::vector<CallDelimiter> marks_of(const Format& format, const ChatRequest& chat) {
  if (chat.choice.choice == tooldecode::ToolChoice::none) return {};
  std::vector<CallDelimiter> delimiters = format.delimiters;
  // A value of a schema is the whole answer, or there is none.
  for (CallDelimiter& delimiter : delimiters)
    delimiter.only_at_start = delimiter.only_at_start || chat.schema.has_value();
  return delimiters;
}

/// The part of a turn's text that is content, up to a text that ends it.
class AnswerText {
 public:
  AnswerText(const Format& format, const ChatRequest& chat)
      : content_(marks_of(format, chat)), stops_(chat.stops) {}

  [[nodiscard]] std::string push(std::string_view bytes) {
    return stops_.push(content_.push(bytes));
  }
  /// The rest, when the turn has ended.
  [[nodiscard]] std::string finish() {
    std::string rest = stops_.push(content_.finish());
    return rest + stops_.finish();
  }
  /// Whether one of the request's stops was there.
  [[nodiscard]] bool is_stopped() const noexcept { return stops_.found(); }

 private:
  ContentStream content_;
  StopFinder stops_;
};

/// Tokens that a request took.
struct Usage {
  std::size_t prompt     = 0;  ///< results of tools that were put in among them
  std::size_t completion = 0;  ///< emitted, end tokens left out

  [[nodiscard]] Json json() const {
    return {{"prompt_tokens", prompt},
            {"completion_tokens", completion},
            {"total_tokens", prompt + completion}};
  }
};

/// Why an answer ended, in OpenAI's words.
inline const char* finish_reason(const tooldecode::EngineTurn& last, const AnswerText& text) {
  using tooldecode::Finish;
  if (!last.calls.empty()) return "tool_calls";
  if (text.is_stopped()) return "stop";
  const Finish finish = last.output.finish;
  return finish == Finish::length || finish == Finish::context ? "length" : "stop";
}

/// A server-sent event.
inline std::string sse_event(const Json& data) {
  return "data: " + json_text(data) + "\n\n";
}

/// A token with its log-probability, as OpenAI writes it; its bytes need not be whole characters.
inline Json token_json(std::string_view bytes, double log_probability) {
  Utf8Stream utf8;
  std::string text = utf8.push(bytes);
  text += utf8.finish();
  Json numbers = Json::array();
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  return {{"token", text},
          {"logprob", log_probability},
          {"bytes", std::move(numbers)},
          {"top_logprobs", Json::array()}};
}

/// Writes one response: as an object, or as the chunks of a stream.
class ReplyWriter {
 public:
  /// \param unique  begins the ids of its calls: a client may use a response's id again
  ReplyWriter(std::string id, std::string unique, std::string model, std::int64_t created)
      : id_(std::move(id)),
        unique_(std::move(unique)),
        model_(std::move(model)),
        created_(created) {}

  /// The calls of a choice's turn that the client is to run.
  [[nodiscard]] Json calls(std::size_t choice, std::size_t turn,
                           std::span<const tooldecode::ToolCall> calls) const {
    const std::string begin = "call_" + unique_ + '_' +
                              (choice == 0 ? "" : std::to_string(choice) + '.') +
                              std::to_string(turn) + '_';
    Json list = Json::array();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      list.push_back(
          {{"id", begin + std::to_string(i)},
           {"type", "function"},
           {"function", {{"name", calls[i].name}, {"arguments", json_text(calls[i].arguments)}}}});
    }
    return list;
  }
  /// The calls of a turn that were answered already.
  [[nodiscard]] Json cached_calls(std::size_t choice, std::size_t turn,
                                  const tooldecode::EngineTurn& done) const {
    Json list = calls(choice, turn, done.calls);
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i]["output"] = done.results[i].output;
      list[i]["turn"]   = turn;
    }
    return list;
  }

  [[nodiscard]] std::string response(Json choices, const Usage& usage) const {
    Json object       = head("chat.completion");
    object["choices"] = std::move(choices);
    object["usage"]   = usage.json();
    return json_text(object);
  }
  /// One chunk. Where usage is asked for, chunks before the last have it as null.
  [[nodiscard]] std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                  const char* finish, bool with_usage) const {
    Json object = head("chat.completion.chunk");
    object["choices"] =
        Json::array({{{"index", choice},
                      {"delta", delta},
                      {"logprobs", log_probabilities(tokens)},
                      {"finish_reason", finish == nullptr ? Json(nullptr) : Json(finish)}}});
    if (with_usage) object["usage"] = nullptr;
    return sse_event(object);
  }
  /// What stands as `logprobs`: null where no token's is told.
  [[nodiscard]] static Json log_probabilities(const Json& tokens) {
    return tokens.empty() ? Json(nullptr) : Json{{"content", tokens}};
  }
  [[nodiscard]] std::string usage_chunk(const Usage& usage) const {
    Json object       = head("chat.completion.chunk");
    object["choices"] = Json::array();
    object["usage"]   = usage.json();
    return sse_event(object);
  }

 private:
  [[nodiscard]] Json head(const char* kind) const {
    return {{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_}};
  }

  std::string id_;
  std::string unique_;
  std::string model_;
  std::int64_t created_;
};

}  // namespace program
