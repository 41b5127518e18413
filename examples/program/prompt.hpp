/// \file
/// The prompt of the embedded model: tool signatures, then the dialogue.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <nlohmann/json.hpp>

namespace program {

/// One turn of a dialogue.
struct Message {
  std::string role;  ///< "user" or "assistant"
  std::string content;
};

/// A schema as the signature line writes it: a type's name, or an enum's values.
inline std::string type_text(const nlohmann::ordered_json& schema) {
  if (!schema.is_object()) return "any";
  const auto join = [](const nlohmann::ordered_json& list, bool quoted) {
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
    const auto items = schema.value("items", nlohmann::ordered_json::object());
    return "array<" + type_text(items) + '>';
  }
  return type.is_string() ? type.get<std::string>() : "any";
}

/// `name(param: TYPE, opt?: TYPE = DEFAULT): description`, without the newline.
inline std::string signature(const tooldecode::Tool& tool) {
  using Json           = nlohmann::ordered_json;
  const Json& document = tool.document;
  const Json& function = document.contains("function") ? document["function"] : document;
  const Json& parameters =
      function.contains("parameters") ? function["parameters"] : tool.parameters;
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

/// The tokens of the whole prompt. Control tokens are put in by id: a user's text cannot forge
/// them.
inline std::vector<tooldecode::TokenId> make_prompt(const tooldecode::Tokenizer& tokenizer,
                                                    const tooldecode::ToolSet& tools,
                                                    std::string_view format,
                                                    const std::vector<Message>& messages) {
  std::vector<tooldecode::TokenId> tokens;
  const auto control = [&](std::string_view name) {
    const auto token = tokenizer.vocabulary().find_special(name);
    if (!token) {
      throw tooldecode::Error(tooldecode::Errc::malformed_vocabulary, std::string(name),
                              "the model's tokenizer lacks this control token");
    }
    tokens.push_back(*token);
  };
  const auto text = [&](std::string_view part) {
    const auto more = tokenizer.encode(part);
    tokens.insert(tokens.end(), more.begin(), more.end());
  };
  control("<|begin|>");
  control("<|tools|>");
  std::string head = "format: " + std::string(format) + '\n';
  for (const tooldecode::Tool& tool : tools) head += signature(tool) + '\n';
  text(head);
  for (const Message& message : messages) {
    if (message.role == "user") {
      control("<|user|>");
      text(message.content);
      control("<|assistant|>");
    } else {
      text(message.content);
      control("<|end|>");
    }
  }
  return tokens;
}

}  // namespace program
