#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/dialogue.hpp>
#include <program/wire_call.hpp>

namespace program::detail {

std::string content_text(const Fields& message, std::vector<std::string>& ignored,
                         std::string_view key, std::initializer_list<std::string_view> types) {
  const Json& content = message.at(key);
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    message.fail(key, "must be a string or an array of text parts", "invalid_type");
  }
  std::string text;
  for (const Fields& part : message.objects(key)) {
    if (std::find(types.begin(), types.end(), part.text("type")) == types.end()) {
      std::string names;
      for (const std::string_view type : types) (names += names.empty() ? "" : " or ") += type;
      part.fail("type", "is supported as " + names + " only");
    }
    if (part.text("type") == "refusal") {
      part.allow({"type", "refusal"}, ignored);
      text += part.text("refusal");
      continue;
    }
    part.allow({"type", "text", "annotations", "logprobs"}, ignored);
    text += part.text("text");
  }
  return text;
}

Json read_arguments(const Fields& call) {
  const std::string& text = call.text("arguments");
  Json arguments;
  try {
    arguments = read_arguments(text);
  } catch (const tooldecode::Error& error) {
    call.fail("arguments", "must be JSON: " + std::string(error.what()));
  }
  if (!arguments.is_object()) call.fail("arguments", "must be an object, as text");
  return arguments;
}

tooldecode::ToolCall read_call(const Fields& entry, std::vector<std::string>& ignored) {
  const Json* type = entry.find("type");
  if (type != nullptr && *type == "custom") {
    const Fields custom = entry.object("custom");
    custom.allow({"name", "input"}, ignored);
    return {.name      = custom.text("name"),
            .arguments = {{std::string(tooldecode::tools::custom_input), custom.text("input")}}};
  }
  if (type != nullptr && *type != "function") entry.fail("type", "must be function or custom");
  const Fields function = entry.object("function");
  function.allow({"name", "arguments", "parsed_arguments"}, ignored);  // clients add the last
  return {.name = function.text("name"), .arguments = read_arguments(function)};
}

}  // namespace program::detail

namespace program {

namespace {

EarlierCall earlier_call(const Fields& entry, std::vector<std::string>& ignored) {
  const bool is_custom = entry.find("custom") != nullptr;
  return {entry, "id", detail::read_call(entry, ignored),
          entry.object(is_custom ? "custom" : "function"), is_custom ? "input" : "arguments"};
}

std::string id_of(const EarlierCall& call) {
  const std::string key(call.id_key);
  return call.entry.find(key) == nullptr ? std::string() : call.entry.text(key);
}

}  // namespace

void Dialogue::add(const Fields& message) {
  const std::string& role = message.text("role");
  if (role != "tool" && awaits_result()) {
    message.fail("role", "must be tool: a call before has no result yet");
  }
  if (role == "system" || role == "developer") {
    message.allow({"role", "content", "name"}, ignored_);
    add_system(detail::content_text(message, ignored_));
  } else if (role == "user") {
    message.allow({"role", "content", "name"}, ignored_);
    add_user(detail::content_text(message, ignored_));
  } else if (role == "assistant") {
    add_assistant(message);
  } else if (role == "tool") {
    message.allow({"role", "content", "tool_call_id", "name"}, ignored_);
    add_result(detail::content_text(message, ignored_), message, "tool_call_id");
  } else {
    message.fail("role", "must be system, developer, user, assistant or tool");
  }
}

void Dialogue::add_system(const std::string& text) {
  if (!system_.empty()) system_ += '\n';
  system_ += text;
}

void Dialogue::add_user(const std::string& text) {
  if (messages_.empty() || messages_.back().role != "user") messages_.push_back({"user", ""});
  std::string& whole = messages_.back().content;
  if (!whole.empty()) whole += '\n';
  whole += text;
}

void Dialogue::add_turn(std::string text, std::span<const EarlierCall> calls, const Fields& place,
                        std::string_view key) {
  for (const EarlierCall& one : calls) {
    calls_.push_back({one.entry.text(one.id_key), one.call, {}});
    for (std::size_t i = 0; i + 1 < calls_.size(); ++i) {
      if (calls_[i].id == calls_.back().id) one.entry.fail(one.id_key, "is that of another call");
    }
  }
  messages_.push_back(make_turn(std::move(text), calls, place, key));
}

Message Dialogue::make_turn(std::string text, std::span<const EarlierCall> calls,
                            const Fields& place, std::string_view key) const {
  Message message{"assistant", std::move(text)};
  if (calls.empty()) return message;
  message.calls_at = message.content.size();
  message.content += write(calls, place, key);
  std::vector<tooldecode::ToolCall> all;
  for (const EarlierCall& one : calls) {
    all.push_back(one.call);
    message.calls.emplace_back(id_of(one), one.call);
  }
  const auto written = std::string_view(message.content).substr(message.calls_at);
  message.delimiters = find_delimiters(*format_, tools_, all, written);
  for (TextRange& range : message.delimiters) range.at += message.calls_at;
  return message;
}

void Dialogue::add_result(const std::string& output, const Fields& place, std::string_view key) {
  const std::string& id = place.text(key);
  const auto pending    = std::find_if(calls_.begin(), calls_.end(),
                                       [&](const PendingCall& call) { return call.id == id; });
  if (pending == calls_.end() || pending->output) {
    place.fail(key, "is not that of a call that awaits its result");
  }
  pending->output = output;
  if (std::any_of(calls_.begin(), calls_.end(), [](const auto& call) { return !call.output; })) {
    return;
  }
  for (PendingCall& call : calls_) {
    messages_.push_back({"tool", std::move(*call.output), call.call.name, call.id});
  }
  calls_.clear();
}

std::vector<Message> Dialogue::finish(const Fields& request, std::string_view key) {
  if (awaits_result()) request.fail(key, "end without the results of all calls");
  if (system_.empty() && messages_.empty()) request.fail(key, "must not be empty");
  if (!system_.empty()) messages_.insert(messages_.begin(), {"system", std::move(system_)});
  return std::move(messages_);
}

void Dialogue::add_assistant(const Fields& message) {
  message.allow(
      {"role", "content", "tool_calls", "cached_tool_calls", "name", "refusal", "reasoning_content",
       "reasoning", "annotations", "audio", "function_call", "parsed"},
      ignored_);
  message.allow_only("audio", Json());
  message.allow_only("function_call", Json());
  const std::string before = add_cached(message);
  std::string text         = message.find("content") == nullptr
                                 ? ""
                                 : detail::content_text(message, ignored_, "content", {"text", "refusal"});
  // The content is the text of all turns; the earlier ones stand before their calls.
  if (text.starts_with(before)) text.erase(0, before.size());
  // A refusal is the message's text; earlier reasoning is not shown again.
  if (text.empty() && message.find("refusal") != nullptr) text = message.text("refusal");
  std::vector<EarlierCall> calls;
  if (message.find("tool_calls") != nullptr) {
    for (const Fields& entry : message.objects("tool_calls")) {
      entry.allow({"id", "type", "function", "custom", "index"}, ignored_);
      calls.push_back(earlier_call(entry, ignored_));
    }
  } else if (message.find("content") == nullptr && message.find("refusal") == nullptr &&
             message.find("cached_tool_calls") == nullptr) {
    message.fail("content", "or tool_calls is required", "missing_required_parameter");
  }
  add_turn(std::move(text), calls, message, "tool_calls");
}

std::string Dialogue::add_cached(const Fields& message) {
  if (message.find("cached_tool_calls") == nullptr) return {};
  std::string texts;
  const std::vector<Fields> entries = message.objects("cached_tool_calls");
  for (std::size_t i = 0; i < entries.size();) {
    std::vector<EarlierCall> calls;
    std::vector<Message> results;
    const auto turn = entries[i].find_integer("turn", 0);
    const std::string text =
        entries[i].find("content") != nullptr ? entries[i].text("content") : std::string();
    texts += text;
    for (; i < entries.size() && entries[i].find_integer("turn", 0) == turn; ++i) {
      entries[i].allow({"id", "type", "function", "custom", "output", "turn", "server_label",
                        "status", "content"},
                       ignored_);
      calls.push_back(earlier_call(entries[i], ignored_));
      results.push_back(
          {"tool", entries[i].text("output"), calls.back().call.name, id_of(calls.back())});
    }
    messages_.push_back(make_turn(text, calls, message, "cached_tool_calls"));
    messages_.insert(messages_.end(), results.begin(), results.end());
  }
  return texts;
}

std::string Dialogue::write(std::span<const EarlierCall> calls, const Fields& place,
                            std::string_view key) const {
  const auto refuse = [&](const Fields& fields, std::string_view member,
                          const tooldecode::Error& error) {
    fields.fail(member, "cannot be written in the format " + format_->name + ": " + error.what(),
                "unsupported_value");
  };
  std::vector<tooldecode::ToolCall> all;
  for (const EarlierCall& one : calls) all.push_back(one.call);
  try {
    return format_->write(all, tools_);
  } catch (const tooldecode::Error& whole) {
    for (const EarlierCall& one : calls) {
      try {
        static_cast<void>(format_->write({&one.call, 1}, tools_));
      } catch (const tooldecode::Error& error) {
        refuse(one.body, one.arguments_key, error);
      }
    }
    refuse(place, key, whole);  // each single call can be written, but not all together
    throw;
  }
}

}  // namespace program
