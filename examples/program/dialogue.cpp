#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/dialogue.hpp>

namespace program::detail {

std::string content_text(const Fields& message) {
  const Json& content = message.at("content");
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    message.fail("content", "must be a string or an array of text parts", "invalid_type");
  }
  std::string text;
  for (const Fields& part : message.objects("content")) {
    if (part.text("type") != "text") part.fail("type", "is supported as text only");
    part.allow({"type", "text", "cache_control", "annotations"});
    text += part.text("text");
  }
  return text;
}

tooldecode::ToolCall read_call(const Fields& entry) {
  const Json* type = entry.find("type");
  if (type != nullptr && *type == "custom") {
    const Fields custom = entry.object("custom");
    custom.allow({"name", "input"});
    return {.name      = custom.text("name"),
            .arguments = {{std::string(tooldecode::tools::custom_input), custom.text("input")}}};
  }
  if (type != nullptr && *type != "function") entry.fail("type", "must be function or custom");
  const Fields function = entry.object("function");
  function.allow({"name", "arguments", "parsed_arguments"});  // clients add parsed_arguments
  tooldecode::ToolCall call{.name = function.text("name")};
  const std::string& arguments = function.text("arguments");
  try {
    call.arguments = tooldecode::text::parse_json(arguments.empty() ? "{}" : arguments);
  } catch (const tooldecode::Error& error) {
    function.fail("arguments", "must be JSON: " + std::string(error.what()));
  }
  if (!call.arguments.is_object()) function.fail("arguments", "must be an object, as text");
  return call;
}

}  // namespace program::detail

namespace program {

void Dialogue::add(const Fields& message) {
  const std::string& role = message.text("role");
  if (role != "tool") require_results(message);
  if (role == "system" || role == "developer") {
    message.allow({"role", "content", "name", "cache_control"});
    if (!system_.empty()) system_ += '\n';
    system_ += detail::content_text(message);
  } else if (role == "user") {
    message.allow({"role", "content", "name", "cache_control"});
    if (messages_.empty() || messages_.back().role != "user") messages_.push_back({role, ""});
    std::string& text = messages_.back().content;
    if (!text.empty()) text += '\n';
    text += detail::content_text(message);
  } else if (role == "assistant") {
    add_assistant(message);
  } else if (role == "tool") {
    add_result(message);
  } else {
    message.fail("role", "must be system, developer, user, assistant or tool");
  }
}

std::vector<Message> Dialogue::finish(const Fields& request) {
  if (!calls_.empty()) request.fail("messages", "end without the results of all calls");
  if (system_.empty() && messages_.empty()) request.fail("messages", "must not be empty");
  if (system_.empty()) return std::move(messages_);
  const auto first = std::find_if(messages_.begin(), messages_.end(),
                                  [](const Message& m) { return m.role == "user"; });
  // The system's text begins the first user message, or becomes one if there is none.
  if (first == messages_.end()) {
    messages_.insert(messages_.begin(), {"user", std::move(system_)});
  } else {
    first->content = system_ + '\n' + first->content;
  }
  return std::move(messages_);
}

void Dialogue::add_assistant(const Fields& message) {
  message.allow({"role", "content", "tool_calls", "cached_tool_calls", "name", "refusal",
                 "reasoning_content", "reasoning", "annotations", "audio", "function_call",
                 "cache_control", "parsed"});
  message.allow_only("audio", Json());
  message.allow_only("function_call", Json());
  add_cached(message);
  std::string text = message.find("content") != nullptr ? detail::content_text(message) : "";
  // A refusal is the message's text; earlier reasoning is not shown again.
  if (text.empty() && message.find("refusal") != nullptr) text = message.text("refusal");
  std::vector<Fields> entries;
  if (message.find("tool_calls") != nullptr) {
    entries = message.objects("tool_calls");
    for (const Fields& entry : entries) {
      entry.allow({"id", "type", "function", "custom", "index"});
      calls_.push_back({entry.text("id"), detail::read_call(entry), {}});
      for (std::size_t i = 0; i + 1 < calls_.size(); ++i) {
        if (calls_[i].id == calls_.back().id) entry.fail("id", "is that of another call");
      }
    }
  } else if (message.find("content") == nullptr && message.find("refusal") == nullptr &&
             message.find("cached_tool_calls") == nullptr) {
    message.fail("content", "or tool_calls is required", "missing_required_parameter");
  }
  std::vector<tooldecode::ToolCall> calls;
  for (const PendingCall& pending : calls_) calls.push_back(pending.call);
  if (!calls.empty()) text += write(calls, message, "tool_calls", entries);
  messages_.push_back({"assistant", std::move(text)});
}

void Dialogue::add_cached(const Fields& message) {
  if (message.find("cached_tool_calls") == nullptr) return;
  const std::vector<Fields> entries = message.objects("cached_tool_calls");
  const std::span<const Fields> all(entries);
  for (std::size_t i = 0, end = 0; i < entries.size(); i = end) {
    std::vector<tooldecode::ToolCall> calls;
    std::vector<Message> results;
    const auto turn = entries[i].find_integer("turn", 0);
    for (; end < entries.size() && entries[end].find_integer("turn", 0) == turn; ++end) {
      entries[end].allow({"id", "type", "function", "custom", "output", "turn"});
      calls.push_back(detail::read_call(entries[end]));
      results.push_back({"tool", entries[end].text("output"), calls.back().name});
    }
    messages_.push_back(
        {"assistant", write(calls, message, "cached_tool_calls", all.subspan(i, end - i))});
    messages_.insert(messages_.end(), results.begin(), results.end());
  }
}

void Dialogue::add_result(const Fields& message) {
  message.allow({"role", "content", "tool_call_id", "name", "cache_control"});
  const std::string& id = message.text("tool_call_id");
  const auto pending    = std::find_if(calls_.begin(), calls_.end(),
                                       [&](const PendingCall& call) { return call.id == id; });
  if (pending == calls_.end() || pending->output) {
    message.fail("tool_call_id", "is not that of a call that awaits its result");
  }
  pending->output = detail::content_text(message);
  if (std::any_of(calls_.begin(), calls_.end(), [](const auto& call) { return !call.output; })) {
    return;
  }
  for (PendingCall& call : calls_) {
    messages_.push_back({"tool", std::move(*call.output), call.call.name});
  }
  calls_.clear();
}

std::string Dialogue::write(const std::vector<tooldecode::ToolCall>& calls, const Fields& message,
                            std::string_view key, std::span<const Fields> entries) const {
  const auto refuse = [&](const Fields& fields, std::string_view member,
                          const tooldecode::Error& error) {
    fields.fail(member, "cannot be written in the format " + format_->name + ": " + error.what(),
                "unsupported_value");
  };
  try {
    return format_->write(calls, tools_);
  } catch (const tooldecode::Error& whole) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      try {
        static_cast<void>(format_->write({&calls[i], 1}, tools_));
      } catch (const tooldecode::Error& error) {
        const bool is_custom = entries[i].find("custom") != nullptr;
        refuse(entries[i].object(is_custom ? "custom" : "function"),
               is_custom ? "input" : "arguments", error);
      }
    }
    refuse(message, key, whole);  // each single call can be written, but not all together
    throw;
  }
}

void Dialogue::require_results(const Fields& message) const {
  if (!calls_.empty()) message.fail("role", "must be tool: a call before has no result yet");
}

}  // namespace program
