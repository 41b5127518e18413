#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <program/json.hpp>
#include <program/prompt.hpp>

namespace program {

namespace {

using Texts = std::set<std::string, std::less<>>;

// Calls `use` with the place and the length of each delimiter of a text.
template <class Use>
void for_each_delimiter(std::string_view text, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = tooldecode::formats::delimiter_length(text.substr(at));
    if (length > 0) use(at, length);
    at += std::max<std::size_t>(length, 1);
  }
}

void add_delimiters(std::string_view text, Texts& all) {
  for_each_delimiter(
      text, [&](std::size_t at, std::size_t length) { all.emplace(text.substr(at, length)); });
}

// The delimiters that a format writes, whatever the calls.
Texts delimiters_of(const tooldecode::NamedFormat& format) {
  static const auto tools = tooldecode::ToolSet::parse(
      R"([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"},
          "b": {"type": "integer"}, "c": {"type": "object"}, "d": {"type": "array"}}}}])");
  const tooldecode::ToolCall call{
      "f", Json{{"a", "x"}, {"b", 1}, {"c", Json{{"k", "x"}}}, {"d", Json::array({"x"})}}};
  Texts all;
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}}) {
    try {
      add_delimiters(format.write(std::vector(count, call), tools), all);
    } catch (const tooldecode::Error&) {
      continue;  // what the format cannot write
    }
  }
  return all;
}

// A value whose texts have no delimiters and are as long as before; adds those of texts and of keys.
Json without_delimiters(const Json& value, Texts& in_texts, Texts& in_keys) {
  if (value.is_string()) {
    std::string text = value.string();
    add_delimiters(text, in_texts);
    for_each_delimiter(value.string(), [&](std::size_t at, std::size_t) { text[at] = 'x'; });
    return text;
  }
  Json changed = value;
  if (value.is_array()) {
    for (Json& item : changed.list()) item = without_delimiters(item, in_texts, in_keys);
  }
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      add_delimiters(key, in_keys);
      changed[key] = without_delimiters(member, in_texts, in_keys);
    }
  }
  return changed;
}

}  // namespace

std::vector<TextRange> find_delimiters(const tooldecode::NamedFormat& format,
                                       const tooldecode::ToolSet& tools,
                                       std::span<const tooldecode::ToolCall> calls,
                                       std::string_view text) {
  const Texts known = delimiters_of(format);
  Texts in_texts, in_names;
  std::vector<tooldecode::ToolCall> changed;
  for (const tooldecode::ToolCall& call : calls) {
    add_delimiters(call.name, in_names);
    changed.push_back({call.name, without_delimiters(call.arguments, in_texts, in_names)});
  }
  // The same text, but with no delimiters in arguments, shows which are the format's.
  std::string without;
  try {
    if (!in_texts.empty()) without = format.write(changed, tools);
  } catch (const tooldecode::Error&) {
    without.clear();
  }
  std::vector<TextRange> ranges;
  for_each_delimiter(text, [&](std::size_t at, std::size_t length) {
    const std::string_view one = text.substr(at, length);
    if (!known.contains(one) || in_names.contains(one)) return;
    const bool is_own = without.size() == text.size() ? without.compare(at, length, one) == 0
                                                      : !in_texts.contains(one);
    if (is_own) ranges.push_back({at, length});
  });
  return ranges;
}

std::vector<Message> without_system(std::vector<Message> messages) {
  if (messages.empty() || messages.front().role != "system") return messages;
  const auto user = std::find_if(messages.begin(), messages.end(),
                                 [](const Message& message) { return message.role == "user"; });
  if (user == messages.end()) {
    messages.front().role = "user";
    return messages;
  }
  user->content = messages.front().content + '\n' + user->content;
  messages.erase(messages.begin());
  return messages;
}

std::string type_text(const Json& schema) {
  if (!schema.is_object()) return "any";
  const auto join = [](const Json& list, bool quoted) {
    std::string text;
    for (const auto& item : list) {
      if (!text.empty()) text += '|';
      text += quoted || !item.is_string() ? item.text() : item.get<std::string>();
    }
    return text;
  };
  if (schema.contains("enum") && schema["enum"].is_array()) return join(schema["enum"], true);
  if (!schema.contains("type")) return "any";
  const auto& type = schema["type"];
  if (type.is_array()) return join(type, false);
  if (type == "array") {
    const auto items = schema.value("items", Json::object());
    return "array<" + type_text(items) + '>';
  }
  return type.is_string() ? type.get<std::string>() : "any";
}

std::string signature(const tooldecode::Tool& tool) {
  const Json document  = tooldecode::parse_json_value(tool.document);
  const Json& function = document.contains("function") ? document["function"] : document;
  // The schema as given, if it is one; otherwise as it was read.
  const auto given = function.find("parameters");
  const bool is_schema =
      given != function.end() && given->is_object() && given->contains("properties");
  const Json& parameters = is_schema ? *given : documented_parameters(tool);
  const Json required    = parameters.value("required", Json::array());
  std::string text       = tool.name + '(';
  bool first             = true;
  const Json properties  = parameters.value("properties", Json::object());
  for (const auto& [name, schema] : properties.items()) {
    if (!first) text += ", ";
    first = false;
    text += name;
    if (std::find(required.begin(), required.end(), name) == required.end()) text += '?';
    text += ": " + type_text(schema);
    if (schema.is_object() && schema.contains("default") && !schema["default"].is_null()) {
      text += " = " + schema["default"].text();
    }
  }
  return text + "): " + tool.description;
}

std::string tools_text(const tooldecode::ToolSet& tools) {
  std::string text;
  for (const tooldecode::Tool& tool : tools) text += signature(tool) + '\n';
  return text;
}

void PromptTokens::control(std::string_view name) {
  const auto token = tokenizer_->vocabulary().find_special(name);
  if (!token) {
    throw tooldecode::Error(tooldecode::Errc::malformed_vocabulary, std::string(name),
                            "the model's tokenizer lacks this control token");
  }
  tokens_.push_back(*token);
}

void PromptTokens::text(std::string_view part) {
  const auto more = tokenizer_->encode(part);
  tokens_.insert(tokens_.end(), more.begin(), more.end());
}

void PromptTokens::user_turn(std::string_view content) {
  control("<|user|>");
  text(content);
  control("<|assistant|>");
}

std::string results_text(std::span<const Message> results) {
  std::string text;
  for (const Message& result : results) {
    if (!text.empty()) text += '\n';
    text += result.name + " returned: " + result.content;
  }
  return text;
}

std::vector<tooldecode::TokenId> make_prompt(const tooldecode::Tokenizer& tokenizer,
                                             const tooldecode::ToolSet& tools,
                                             std::string_view format,
                                             const std::vector<Message>& messages) {
  PromptTokens prompt(tokenizer);
  prompt.control("<|begin|>");
  prompt.control("<|tools|>");
  prompt.text("format: " + std::string(format) + '\n' + tools_text(tools));
  for (std::size_t i = 0, end = 0; i < messages.size(); i = end) {
    end = i + 1;
    if (messages[i].role == "user") {
      prompt.user_turn(messages[i].content);
    } else if (messages[i].role == "tool") {
      while (end < messages.size() && messages[end].role == "tool") ++end;
      prompt.user_turn(results_text(std::span(messages).subspan(i, end - i)));
    } else {
      prompt.text(messages[i].content);
      prompt.control("<|end|>");
      if (end == messages.size()) prompt.control("<|assistant|>");  // an answer follows
    }
  }
  return prompt.take();
}

std::vector<tooldecode::TokenId> make_results_prompt(const tooldecode::Tokenizer& tokenizer,
                                                     std::span<const Message> results) {
  PromptTokens tokens(tokenizer);
  tokens.control("<|end|>");
  tokens.user_turn(results_text(results));
  return tokens.take();
}

}  // namespace program
