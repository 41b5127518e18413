/// \file
/// The wire of answers: text that may be shown so far, messages, chunks of a stream, usage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/text/stop_finder.hpp>
#include <tooldecode/text/utf8_stream.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/custom_input.hpp>
#include <program/openai.hpp>

namespace program {

/// What a turn says so far: its events, of whose text comes what is content as soon as that is
/// known, up to a text that ends it. White space alone before calls is none.
class AnswerText {
 public:
  using Events = std::vector<tooldecode::StreamEvent>;

  /// \param calls  the constraint of the turn
  AnswerText(tooldecode::ToolCallFSM calls, std::vector<std::string> stops)
      : stream_(std::move(calls)), stops_(std::move(stops)) {}

  [[nodiscard]] Events push(tooldecode::TokenId token) { return shown(stream_.push(token)); }
  /// The rest, when the turn has ended.
  [[nodiscard]] Events finish() {
    Events events = shown(stream_.finish());
    std::string rest;
    if (!calls_ && !space_.empty()) rest = stops_.push(std::exchange(space_, {}));
    rest += stops_.finish();
    if (!rest.empty()) events.push_back({.kind = Kind::text, .text = std::move(rest)});
    return events;
  }
  /// The one of the request's stops that was there, or null.
  [[nodiscard]] const std::string* stop() const noexcept { return stops_.found(); }

 private:
  using Kind = tooldecode::StreamEvent::Kind;

  [[nodiscard]] Events shown(Events events) {
    for (tooldecode::StreamEvent& event : events) {
      calls_ = calls_ || event.kind == Kind::call_begin;
      if (event.kind != Kind::text) continue;
      if (!begun_) {
        space_ += event.text;
        begun_     = space_.find_first_not_of(" \t\r\n") != std::string::npos;
        event.text = begun_ ? std::exchange(space_, {}) : std::string();
      }
      event.text = stops_.push(event.text);
    }
    std::erase_if(events, [](const tooldecode::StreamEvent& event) {
      return event.kind == Kind::text && event.text.empty();
    });
    return events;
  }

  tooldecode::CallStream stream_;
  tooldecode::text::StopFinder stops_;
  std::string space_;   // that the text begins with
  bool begun_ = false;  // with what is no white space
  bool calls_ = false;  // were begun
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

/// Why an answer ended.
struct AnswerEnd {
  const char* reason;  ///< in OpenAI's words
  Json stop;           ///< the request's text, or id of a token, that ended it; else null

  /// \param stop_tokens  the request's
  AnswerEnd(const tooldecode::EngineTurn& last, const AnswerText& text,
            std::span<const tooldecode::TokenId> stop_tokens) {
    using tooldecode::Finish;
    const Finish finish = last.output.finish;
    const bool is_cut   = finish == Finish::length || finish == Finish::context;
    reason = !last.calls.empty() ? "tool_calls" : is_cut && !text.stop() ? "length" : "stop";
    const auto& token = last.output.end_token;
    if (text.stop()) {
      stop = *text.stop();
    } else if (token &&
               std::find(stop_tokens.begin(), stop_tokens.end(), *token) != stop_tokens.end()) {
      stop = *token;
    }
  }
};

/// The text of each call of a turn to a custom tool, by its number.
using CustomInputs = std::map<std::size_t, CustomInput>;

/// A server-sent event.
inline std::string sse_event(const Json& data) {
  return "data: " + json_text(data) + "\n\n";
}

/// A token with its log-probability, as OpenAI writes it; its bytes need not be whole characters.
inline Json token_json(std::string_view bytes, double log_probability) {
  tooldecode::text::Utf8Stream utf8;
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
  /// \param tools   the request's, to which calls are
  ReplyWriter(std::string id, std::string unique, std::string model, std::int64_t created,
              tooldecode::ToolSet tools)
      : id_(std::move(id)),
        unique_(std::move(unique)),
        model_(std::move(model)),
        created_(created),
        tools_(std::move(tools)) {}

  /// The calls of a choice's turn that the client is to run.
  [[nodiscard]] Json calls(std::size_t choice, std::size_t turn,
                           std::span<const tooldecode::ToolCall> calls) const {
    Json list = Json::array();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto& [name, arguments] = calls[i];
      list.push_back(call(choice, turn, i, name,
                          is_custom(name)
                              ? arguments.json().at(std::string(tooldecode::tools::custom_input))
                              : Json(json_text(arguments))));
    }
    return list;
  }
  /// What an event adds to the calls of a choice's turn; nothing where it adds none.
  [[nodiscard]] std::optional<Json> calls_delta(std::size_t choice, std::size_t turn,
                                                const tooldecode::StreamEvent& event,
                                                CustomInputs& inputs) const {
    using Kind = tooldecode::StreamEvent::Kind;
    Json entry{{"index", event.call}};
    const auto input = inputs.find(event.call);
    if (event.kind == Kind::call_begin) {
      entry.update(call(choice, turn, event.call, event.text, ""));
      if (is_custom(event.text)) inputs.emplace(event.call, CustomInput());
    } else if (event.kind == Kind::arguments && input != inputs.end()) {
      const std::string more = input->second.push(event.text);
      if (more.empty()) return std::nullopt;
      entry["custom"] = {{"input", more}};
    } else if (event.kind == Kind::arguments) {
      entry["function"] = {{"arguments", event.text}};
    } else {
      return std::nullopt;
    }
    return Json::array({std::move(entry)});
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
  /// One chunk, the choice's last where it has an end. Where usage is asked for, chunks before the
  /// last have it as null.
  [[nodiscard]] std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                  const AnswerEnd* end, bool with_usage) const {
    Json object = head("chat.completion.chunk");
    Json part{{"index", choice},
              {"delta", delta},
              {"logprobs", log_probabilities(tokens)},
              {"finish_reason", end == nullptr ? Json(nullptr) : Json(end->reason)}};
    if (end != nullptr) part["stop_reason"] = end->stop;
    object["choices"] = Json::array({std::move(part)});
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
  [[nodiscard]] bool is_custom(const std::string& name) const {
    const auto tool = tools_.find(name);
    return tool && tools_[*tool].form == tooldecode::DocumentForm::custom;
  }
  [[nodiscard]] Json call(std::size_t choice, std::size_t turn, std::size_t index,
                          const std::string& name, const Json& arguments) const {
    const std::string id = "call_" + unique_ + '_' +
                           (choice == 0 ? "" : std::to_string(choice) + '.') +
                           std::to_string(turn) + '_' + std::to_string(index);
    const bool custom = is_custom(name);
    const char* type  = custom ? "custom" : "function";
    return {{"id", id},
            {"type", type},
            {type, {{"name", name}, {custom ? "input" : "arguments", arguments}}}};
  }
  [[nodiscard]] Json head(const char* kind) const {
    return {{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_}};
  }

  std::string id_;
  std::string unique_;
  std::string model_;
  std::int64_t created_;
  tooldecode::ToolSet tools_;
};

}  // namespace program
