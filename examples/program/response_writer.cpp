#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <program/response_writer.hpp>

namespace program {

namespace {

Json usage_json(const Usage& usage) {
  return {{"input_tokens", usage.prompt},
          {"input_tokens_details", {{"cached_tokens", usage.cached}, {"cache_write_tokens", 0}}},
          {"output_tokens", usage.completion},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning}}},
          {"total_tokens", usage.prompt + usage.completion}};
}

Json text_part(const std::string& text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

Json reasoning_part(const std::string& text) {
  return {{"type", "reasoning_text"}, {"text", text}};
}

}  // namespace

std::string ResponseWriter::response(Json choices, const Usage& usage) {
  const Json& choice = choices.front();
  const auto add     = [this](const Json& delta) {
    static_cast<void>(chunk(0, delta, Json::array(), nullptr));
  };
  for (const Json& delta : choice.at("parts")) add(delta);
  const Json calls = choice.at("message").value("tool_calls", Json::array());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Json entry{{"index", i}};
    entry.update(calls[i]);
    add({{"tool_calls", Json::array({std::move(entry)})}});
  }
  static_cast<void>(finish(choice.at("finish_reason").string(), choice.at("stop_reason")));
  Json whole     = object(status_.c_str(), output_);
  whole["usage"] = usage_json(usage);
  return json_text(whole);
}

std::string ResponseWriter::begin(std::size_t /*choices*/) {
  const Json empty   = object("in_progress", Json::array());
  std::string events = event("response.created", {{"response", empty}});
  return events += event("response.in_progress", {{"response", empty}});
}

std::string ResponseWriter::chunk(std::size_t /*choice*/, const Json& delta, const Json& /*tokens*/,
                                  const AnswerEnd* end) {
  std::string events;
  for (const auto& [key, value] : delta.items()) {
    if (key == "reasoning_content") events += add_text(Part::reasoning, value.string());
    if (key == "content") events += add_text(Part::message, value.string());
    if (key == "cached_tool_calls") {
      for (const Json& call : value) {
        if (call.contains("server_label")) events += add_hosted(call);
      }
    }
    if (key != "tool_calls") continue;
    for (const Json& entry : value) events += add_call(entry);
  }
  if (end != nullptr) events += finish(end->reason, end->stop);
  return events;
}

std::string ResponseWriter::finish(std::string_view reason, const Json& stop) {
  // A response has a message if it has nothing else.
  std::string events;
  if (part_ == Part::none && output_.empty()) events = add_text(Part::message, "");
  status_ = reason == "length" ? "incomplete" : "completed";
  cut_by_ = stop == turn_limit ? turn_limit : "max_output_tokens";
  return events + close(status_ == "completed");
}

std::string ResponseWriter::end(const Usage& usage) {
  Json whole     = object(status_.c_str(), output_);
  whole["usage"] = usage_json(usage);
  return event("response." + status_, {{"response", std::move(whole)}});
}

std::string ResponseWriter::failed(const ApiError& error) {
  const Json said = error.json().at("error");
  Json whole      = object("failed", output_);
  whole["error"]  = {{"code", said.at("code")}, {"message", said.at("message")}};
  return event("response.failed", {{"response", std::move(whole)}});
}

std::string ResponseWriter::add_text(Part part, const std::string& text) {
  std::string events;
  const bool is_message = part == Part::message;
  if (part_ != part) {
    events =
        open(part,
             is_message
                 ? Json{{"id", item_id("msg_")}, {"type", "message"}, {"role", "assistant"}}
                 : Json{{"id", item_id("rs_")}, {"type", "reasoning"}, {"summary", Json::array()}});
    events += item_event(
        "content_part.added",
        {{"content_index", 0}, {"part", is_message ? text_part("") : reasoning_part("")}});
  }
  if (text.empty()) return events;
  text_ += text;
  Json more{{"content_index", 0}, {"delta", text}};
  if (is_message) more["logprobs"] = Json::array();
  return events + item_event(is_message ? "output_text.delta" : "reasoning_text.delta", more);
}

std::string ResponseWriter::add_call(const Json& entry) {
  const bool is_custom  = entry.contains("custom");
  const Json& body      = entry.at(is_custom ? "custom" : "function");
  const char* const key = is_custom ? "input" : "arguments";
  std::string events;
  if (entry.contains("id")) {
    events = open(is_custom ? Part::custom : Part::call,
                  {{"id", item_id(is_custom ? "ctc_" : "fc_")},
                   {"type", is_custom ? "custom_tool_call" : "function_call"},
                   {"call_id", entry.at("id")},
                   {"name", body.at("name")}});
  }
  const std::string text = body.value(key, Json("")).string();
  if (text.empty()) return events;
  text_ += text;
  return events +
         item_event(is_custom ? "custom_tool_call_input.delta" : "function_call_arguments.delta",
                    {{"delta", text}});
}

std::string ResponseWriter::add_hosted(const Json& call) {
  std::string events    = close(true);
  const bool is_failed  = call.at("status") != "ok";
  const char* status    = is_failed ? "failed" : "completed";
  const Json& arguments = call.at("function").at("arguments");
  open_                 = {{"id", item_id("mcp_")},
                           {"type", "mcp_call"},
                           {"server_label", call.at("server_label")},
                           {"name", call.at("function").at("name")},
                           {"arguments", ""},
                           {"output", nullptr},
                           {"error", nullptr},
                           {"status", "in_progress"}};
  const auto index      = output_.size();
  events += event("response.output_item.added", {{"output_index", index}, {"item", open_}});
  events += item_event("mcp_call.in_progress", Json::object());
  events += item_event("mcp_call_arguments.delta", {{"delta", arguments}});
  events += item_event("mcp_call_arguments.done", {{"arguments", arguments}});
  events += item_event(std::string("mcp_call.") + status, Json::object());
  open_["arguments"]                    = arguments;
  open_["status"]                       = status;
  open_[is_failed ? "error" : "output"] = call.at("output");
  events += event("response.output_item.done", {{"output_index", index}, {"item", open_}});
  output_.push_back(std::exchange(open_, nullptr));
  return events;
}

std::string ResponseWriter::open(Part part, Json begun_item) {
  std::string events = close(true);
  part_              = part;
  open_              = std::move(begun_item);
  open_["status"]    = "in_progress";
  Json begun         = item();
  if (part == Part::message || part == Part::reasoning) begun["content"] = Json::array();
  return events + event("response.output_item.added",
                        {{"output_index", output_.size()}, {"item", std::move(begun)}});
}

std::string ResponseWriter::close(bool is_whole) {
  if (part_ == Part::none) return "";
  open_["status"] = is_whole ? "completed" : "incomplete";
  std::string events;
  switch (part_) {
    case Part::message:
      events = item_event("output_text.done",
                          {{"content_index", 0}, {"text", text_}, {"logprobs", Json::array()}});
      events += item_event("content_part.done", {{"content_index", 0}, {"part", text_part(text_)}});
      break;
    case Part::reasoning:
      events = item_event("reasoning_text.done", {{"content_index", 0}, {"text", text_}});
      events +=
          item_event("content_part.done", {{"content_index", 0}, {"part", reasoning_part(text_)}});
      break;
    case Part::call:
      events = item_event("function_call_arguments.done",
                          {{"name", open_.at("name")}, {"arguments", text_}});
      break;
    case Part::custom:
      events = item_event("custom_tool_call_input.done", {{"input", text_}});
      break;
    case Part::none:
      break;
  }
  const Json done = item();
  events += event("response.output_item.done", {{"output_index", output_.size()}, {"item", done}});
  output_.push_back(done);
  part_ = Part::none;
  text_.clear();
  return events;
}

std::string ResponseWriter::item_event(const std::string& type, Json more) {
  Json all{{"item_id", open_.at("id")}, {"output_index", output_.size()}};
  all.update(more);
  return event("response." + type, std::move(all));
}

std::string ResponseWriter::event(const std::string& type, Json more) {
  Json data{{"type", type}, {"sequence_number", sequence_++}};
  data.update(more);
  return "event: " + type + '\n' + sse_event(data);
}

Json ResponseWriter::object(const char* status, const Json& output) const {
  Json whole{{"id", head().id},
             {"object", "response"},
             {"created_at", head().created},
             {"status", status},
             {"background", false},
             {"error", nullptr},
             {"incomplete_details", nullptr},
             {"model", head().model},
             {"output", output},
             {"previous_response_id", nullptr},
             {"store", false},
             {"truncation", "disabled"},
             {"usage", nullptr}};
  if (status == std::string_view("incomplete")) {
    whole["incomplete_details"] = {{"reason", cut_by_}};
  }
  if (status == std::string_view("completed")) whole["completed_at"] = std::time(nullptr);
  whole.update(echo_);
  whole.update(head().notes);
  return whole;
}

Json ResponseWriter::item() const {
  Json whole = open_;
  switch (part_) {
    case Part::message:
      whole["content"] = Json::array({text_part(text_)});
      break;
    case Part::reasoning:
      whole["content"] = Json::array({reasoning_part(text_)});
      break;
    case Part::call:
      whole["arguments"] = text_;
      break;
    case Part::custom:
      whole["input"] = text_;
      break;
    case Part::none:
      break;
  }
  return whole;
}

std::string ResponseWriter::item_id(std::string_view prefix) const {
  // The item that is open is written before the next one begins.
  const std::size_t index = output_.size() + (part_ == Part::none ? 0 : 1);
  return std::string(prefix) + head().unique + '_' + std::to_string(index);
}

}  // namespace program
