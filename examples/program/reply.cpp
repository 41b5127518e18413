#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/grammar/automaton.hpp>

#include <program/reply.hpp>

namespace program {

namespace {

constexpr const char* white_space = " \t\r\n";

}  // namespace

AnswerText::Events AnswerText::push(tooldecode::TokenId token) {
  if (dropped_.before_text && !begun_ && !has_block_) begin_.push_back(token);
  return shown(stream_.push(token));
}

bool AnswerText::drops_space() const {
  // An empty block has no text.
  return dropped_.before_text && (has_block_ || reasoning_tokens(begin_) > 0);
}

AnswerText::Events AnswerText::finish() {
  Events events = shown(stream_.finish());
  std::string rest;
  if (!calls_ && !drops_space()) rest = stops_.push(std::exchange(space_, {}));
  rest += stops_.finish();
  if (!rest.empty()) events.push_back({.kind = Kind::text, .text = std::move(rest)});
  return events;
}

AnswerText::Events AnswerText::shown(Events events) {
  Events all;
  for (tooldecode::StreamEvent& event : events) {
    calls_     = calls_ || event.kind == Kind::call_begin;
    has_block_ = has_block_ || event.kind == Kind::reasoning;
    if (event.kind == Kind::reasoning && dropped_.around_reasoning) {
      event.text = reasoning(event.text);
    }
    if (event.kind == Kind::call_begin) {
      // No stop text reaches into a call: what might have begun one stands before it.
      if (std::string rest = stops_.finish(); !rest.empty()) {
        all.push_back({.kind = Kind::text, .text = std::move(rest)});
      }
    }
    if (event.kind == Kind::text) {
      if (!begun_) {
        space_ += event.text;
        const std::size_t first = space_.find_first_not_of(white_space);
        begun_                  = first != std::string::npos;
        event.text              = begun_ ? std::exchange(space_, {}) : std::string();
        if (begun_ && drops_space()) event.text.erase(0, first);
      }
      event.text = stops_.push(event.text);
    }
    const bool is_text = event.kind == Kind::text || event.kind == Kind::reasoning;
    if (!is_text || !event.text.empty()) all.push_back(std::move(event));
  }
  return all;
}

std::string AnswerText::reasoning(const std::string& text) {
  const std::size_t last = text.find_last_not_of(white_space);
  if (last == std::string::npos) {
    thought_space_ += text;
    return "";
  }
  const std::string before = std::exchange(thought_space_, text.substr(last + 1));
  const bool is_first      = !std::exchange(has_thought_, true);
  const std::size_t first  = is_first ? text.find_first_not_of(white_space) : 0;
  return (is_first ? "" : before) + text.substr(first, last + 1 - first);
}

std::size_t AnswerText::reasoning_tokens(std::span<const tooldecode::TokenId> turn) const {
  const tooldecode::Constraint& grammar = constraint_.constraint();
  const auto may_reason                 = [&](tooldecode::ToolCallFSM::State state) {
    if (constraint_.is_finished(state)) return false;
    const auto& automaton = grammar.automaton();
    for (const auto& position : automaton.positions(grammar.automaton_state(state))) {
      const auto marks = automaton.tags_at(position);
      if (std::ranges::find(marks, tooldecode::formats::mark::reasoning) != marks.end()) {
        return true;
      }
    }
    return false;
  };
  std::size_t count = 0;
  auto state        = constraint_.initial();
  bool before       = may_reason(state);
  for (const tooldecode::TokenId token : turn) {
    const auto next = constraint_.advance(state, token);
    if (!next) break;  // an end token of the request
    const bool after = may_reason(*next);
    count += before || after ? 1 : 0;
    state  = *next;
    before = after;
  }
  return count;
}

Json Usage::json() const {
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", {{"cached_tokens", cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", reasoning}}}};
}

AnswerEnd::AnswerEnd(const tooldecode::EngineReply& reply,
                     std::span<const tooldecode::ToolCall> calls, const AnswerText& text,
                     std::span<const tooldecode::TokenId> stop_tokens)
    : votes(votes_json(reply)) {
  using tooldecode::Finish;
  const auto& last    = reply.turns.back();
  const Finish finish = last.output.finish;
  const bool is_left  = calls.size() < last.calls.size();  // to tools that the server runs
  const bool is_cut   = finish == Finish::length || finish == Finish::context || is_left;
  reason              = !calls.empty() ? "tool_calls" : is_cut && !text.stop() ? "length" : "stop";
  const auto& token   = last.output.end_token;
  if (text.stop()) {
    stop = *text.stop();
  } else if (is_left) {
    stop = turn_limit;
  } else if (token &&
             std::find(stop_tokens.begin(), stop_tokens.end(), *token) != stop_tokens.end()) {
    stop = *token;
  }
}

Json votes_json(const tooldecode::EngineReply& reply) {
  Json list = Json::array();
  for (std::size_t turn = 0; turn < reply.turns.size(); ++turn) {
    for (const tooldecode::CallVote& vote : reply.turns[turn].votes) {
      Json agreement = Json::object();
      for (const tooldecode::ParameterVote& parameter : vote.parameters) {
        agreement[parameter.key] = parameter.agreement();
      }
      list.push_back({{"turn", turn},
                      {"name", vote.call.name},
                      {"orders", vote.orders},
                      {"sampled", vote.candidates.size()},
                      {"written", vote.is_written},
                      {"agreement", std::move(agreement)}});
    }
  }
  return list;
}

std::string sse_event(const Json& data) {
  return "data: " + json_text(data) + "\n\n";
}

std::string stream_end(Json last, const Usage& usage) {
  std::string events;
  if (!last.is_null()) {
    last["choices"] = Json::array();
    last["usage"]   = usage.json();
    events          = sse_event(last);
  }
  return events + "data: [DONE]\n\n";
}

namespace {

// A token as text and as bytes; a token without text, such as an end token, by name.
Json written_token(const tooldecode::Vocabulary& vocabulary, tooldecode::TokenId token,
                   double log_probability) {
  const std::string_view bytes = vocabulary.name(token);
  tooldecode::text::Utf8Stream utf8;
  std::string text = utf8.push(bytes);
  text += utf8.finish();
  Json numbers = Json::array();
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  return {{"token", text}, {"logprob", log_probability}, {"bytes", std::move(numbers)}};
}

}  // namespace

Json token_json(const tooldecode::Vocabulary& vocabulary, tooldecode::TokenId token,
                double log_probability, std::span<const tooldecode::LikelyToken> likeliest) {
  Json json = written_token(vocabulary, token, log_probability);
  Json top  = Json::array();
  for (const tooldecode::LikelyToken& one : likeliest) {
    top.push_back(written_token(vocabulary, one.token, one.log_probability));
  }
  json["top_logprobs"] = std::move(top);
  return json;
}

Json ReplyWriter::calls(std::size_t choice, std::size_t turn,
                        std::span<const tooldecode::ToolCall> calls,
                        std::span<const std::string> written) const {
  Json list = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto& [name, arguments] = calls[i];
    list.push_back(call(choice, turn, i, name,
                        is_custom(name) ? arguments.at(std::string(tooldecode::tools::custom_input))
                                        : Json(written[i])));
  }
  return list;
}

std::optional<Json> ReplyWriter::calls_delta(std::size_t choice, std::size_t turn,
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

std::span<const tooldecode::ToolCall> ReplyWriter::client_calls(
    const tooldecode::EngineTurn& last) const {
  // A turn has calls to tools of one kind.
  const bool is_here = !last.calls.empty() && head_.hosted.contains(last.calls.front().name);
  return is_here ? std::span<const tooldecode::ToolCall>() : last.calls;
}

Json ReplyWriter::cached_calls(std::size_t choice, std::size_t turn,
                               const tooldecode::EngineTurn& done,
                               std::span<const std::string> written,
                               const std::string& before) const {
  Json list = calls(choice, turn, done.calls, written);
  if (!before.empty() && !list.empty()) list[0]["content"] = before;
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i]["output"] = done.results[i].output;
    list[i]["turn"]   = turn;
    if (const auto here = head_.hosted.find(done.calls[i].name); here != head_.hosted.end()) {
      list[i]["server_label"] = here->second;
      list[i]["status"]       = std::string(tooldecode::name(done.results[i].status));
    }
  }
  return list;
}

Json log_probabilities_json(const Json& tokens) {
  return tokens.empty() ? Json(nullptr) : Json{{"content", tokens}};
}

bool ReplyWriter::is_custom(const std::string& name) const {
  const auto tool = head_.tools.find(name);
  return tool && head_.tools[*tool].form == tooldecode::DocumentForm::custom;
}

Json ReplyWriter::call(std::size_t choice, std::size_t turn, std::size_t index,
                       const std::string& name, const Json& arguments) const {
  // OpenAI takes histories with ids of at most 40 characters; 80 random bits leave room for the rest.
  const std::string id = "call_" + head_.unique.substr(0, 20) + '_' +
                         (choice == 0 ? "" : std::to_string(choice) + '.') + std::to_string(turn) +
                         '_' + std::to_string(index);
  const bool custom = is_custom(name);
  const char* type  = custom ? "custom" : "function";
  return {{"id", id},
          {"type", type},
          {type, {{"name", name}, {custom ? "input" : "arguments", arguments}}}};
}

}  // namespace program
