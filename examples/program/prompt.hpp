/// \file
/// The prompt of the embedded model: tool signatures, then the dialogue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <program/json.hpp>

namespace program {

/// One turn of a dialogue. The results of a turn's calls are messages that follow one another.
struct Message {
  std::string role;     ///< "user", "assistant" or "tool"
  std::string content;  ///< an assistant's calls are text in the format; a tool's is its output
  std::string name{};   ///< of the tool, where a tool speaks
};

/// A schema as the signature line writes it: a type's name, or an enum's values.
inline std::string type_text(const Json& schema) {
  if (!schema.is_object()) return "any";
  const auto join = [](const Json& list, bool quoted) {
    std::string text;
    for (const auto& item : list) {
      if (!text.empty()) text += '|';
      text += quoted || !item.is_string() ? item.dump() : item.get<std::string>();
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

/// `name(param: TYPE, opt?: TYPE = DEFAULT): description`, without the newline.
inline std::string signature(const tooldecode::Tool& tool) {
  const Json& document = tool.document;
  const Json& function = document.contains("function") ? document["function"] : document;
  const Json& parameters =
      function.contains("parameters") ? function["parameters"] : documented_parameters(tool);
  const Json required   = parameters.value("required", Json::array());
  std::string text      = tool.name + '(';
  bool first            = true;
  const Json properties = parameters.value("properties", Json::object());
  for (const auto& [name, schema] : properties.items()) {
    if (!first) text += ", ";
    first = false;
    text += name;
    if (std::find(required.begin(), required.end(), name) == required.end()) text += '?';
    text += ": " + type_text(schema);
    if (schema.is_object() && schema.contains("default") && !schema["default"].is_null()) {
      text += " = " + schema["default"].dump();
    }
  }
  return text + "): " + tool.description;
}

/// The documents of tools, a line each.
inline std::string tools_text(const tooldecode::ToolSet& tools) {
  std::string text;
  for (const tooldecode::Tool& tool : tools) text += signature(tool) + '\n';
  return text;
}

/// Tokens of a prompt, piece by piece. Control tokens are put in by id: a user's text cannot forge
/// them.
class PromptTokens {
 public:
  explicit PromptTokens(const tooldecode::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  void control(std::string_view name) {
    const auto token = tokenizer_->vocabulary().find_special(name);
    if (!token) {
      throw tooldecode::Error(tooldecode::Errc::malformed_vocabulary, std::string(name),
                              "the model's tokenizer lacks this control token");
    }
    tokens_.push_back(*token);
  }
  void text(std::string_view part) {
    const auto more = tokenizer_->encode(part);
    tokens_.insert(tokens_.end(), more.begin(), more.end());
  }
  void user_turn(std::string_view content) {
    control("<|user|>");
    text(content);
    control("<|assistant|>");
  }
  [[nodiscard]] std::vector<tooldecode::TokenId> take() { return std::move(tokens_); }

 private:
  const tooldecode::Tokenizer* tokenizer_;
  std::vector<tooldecode::TokenId> tokens_;
};

/// What tools returned, a line each. The model knows users and itself, so a user tells it.
inline std::string results_text(std::span<const Message> results) {
  std::string text;
  for (const Message& result : results) {
    if (!text.empty()) text += '\n';
    text += result.name + " returned: " + result.content;
  }
  return text;
}

/// The tokens of the whole prompt.
inline std::vector<tooldecode::TokenId> make_prompt(const tooldecode::Tokenizer& tokenizer,
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
    }
  }
  return prompt.take();
}

/// The tokens between a turn with calls and the one that reads their results.
inline std::vector<tooldecode::TokenId> make_results_prompt(const tooldecode::Tokenizer& tokenizer,
                                                            std::span<const Message> results) {
  PromptTokens tokens(tokenizer);
  tokens.control("<|end|>");
  tokens.user_turn(results_text(results));
  return tokens.take();
}

}  // namespace program
