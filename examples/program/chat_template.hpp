/// \file
/// ChatTemplate: a model's template, rendered by llama.cpp's Jinja engine.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

#include <jinja/caps.h>
#include <jinja/lexer.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>
#include <json.h>
#include <program/formats.hpp>
#include <program/json.hpp>
#include <program/prompt.hpp>

namespace program {

/// A part of a rendered dialogue: the template's text, or input.
struct TemplatePart {
  std::string text;
  bool is_input = false;  ///< of a message or a tool: control tokens' names are plain text
};

/// A chat template of a GGUF file.
///
/// \par Errors  Error{malformed_document} for a template that cannot be read or rendered
class ChatTemplate {
 public:
  ChatTemplate(const std::string& source, std::string begin, std::string end)
      : begin_(std::move(begin)), end_(std::move(end)) {
    guard([&] {
      jinja::lexer lexer;
      const auto tokens = lexer.tokenize(source);
      program_          = jinja::parse_from_tokens(tokens);
      source_           = tokens.source;
      const auto caps   = jinja::caps_get(program_);
      has_tools_        = caps.supports_tools;
      has_system_       = caps.supports_system_role;
      auto before       = jinja::token::eof;
      for (const auto& token : tokens.tokens) {
        const bool is_member = before == jinja::token::dot;
        if (token.t == jinja::token::identifier && !is_member) names_.insert(token.value);
        before = token.t;
      }
    });
    needs_calls_    = has_tools_ && !renders_results(false) && renders_results(true);
    takes_one_call_ = needs_calls_ && !renders_two_calls();
  }

  [[nodiscard]] bool has_tools() const { return has_tools_; }
  /// Whether a message of the role "system" is part of the prompt.
  [[nodiscard]] bool has_system() const { return has_system_; }
  /// Whether results need the calls that they are of: a text in the place of the calls is refused.
  [[nodiscard]] bool needs_calls() const { return needs_calls_; }
  /// Whether the template needs calls and leaves out those behind the first of a message.
  [[nodiscard]] bool takes_one_call() const { return takes_one_call_; }

  [[nodiscard]] bool says(std::string_view text) const {
    return source_.find(text) != std::string::npos;
  }

  [[nodiscard]] bool takes(const std::string& variable) const { return names_.contains(variable); }

  /// The prompt of a dialogue. Tools are included only if the template supports them.
  ///
  /// \param is_asked  whether an answer follows
  [[nodiscard]] std::vector<TemplatePart> render(const std::vector<Message>& messages,
                                                 const tooldecode::ToolSet& tools,
                                                 const TemplateVariables& variables = {},
                                                 bool is_asked                      = true) const {
    Json turns = Json::array();
    CallIds ids(messages);
    const WrittenCalls written(messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& message = messages[i];
      if (!needs_calls_ || message.role != "assistant" || message.calls.empty()) {
        turns.push_back(turn_of(message));
        if (!message.delimiters.empty()) turns.back()["content"] = written.content(message);
        if (needs_calls_ && message.role == "tool") {
          turns.back()["tool_call_id"] = ids.of(message.id);
        }
        continue;
      }
      Json turn{{"role", message.role}, {"content", message.content.substr(0, message.calls_at)}};
      Json results = Json::array();
      for (const auto& [id, call] : message.calls) {
        const std::string own = ids.of(id);
        turn["tool_calls"].push_back(call_json(own, call.name, call.arguments));
        if (i + 1 < messages.size() && messages[i + 1].role == "tool") {
          Json result            = turn_of(messages[++i]);
          result["tool_call_id"] = own;  // results are in the order of their calls
          results.push_back(std::move(result));
        }
        if (!takes_one_call_) continue;
        turns.push_back(std::move(turn));
        for (const Json& result : results) turns.push_back(result);
        turn    = Json{{"role", message.role}, {"content", ""}};
        results = Json::array();
      }
      if (takes_one_call_) continue;
      turns.push_back(std::move(turn));
      for (const Json& result : results) turns.push_back(result);
    }
    return written.put_into(render(std::move(turns), tools, is_asked, variables));
  }

  /// Renders messages in the form of the chat API.
  ///
  /// \param is_asked  whether an answer follows
  [[nodiscard]] std::vector<TemplatePart> render(Json messages, const tooldecode::ToolSet& tools,
                                                 bool is_asked,
                                                 const TemplateVariables& variables = {}) const {
    Json input = Json::object();  // its texts are no control tokens
    for (const auto& [name, value] : variables) input[name] = value;
    input["add_generation_prompt"] = is_asked;
    input["messages"]              = std::move(messages);
    if (has_tools_) {
      for (const tooldecode::Tool& tool : tools) {
        input["tools"].push_back({{"type", "function"},
                                  {"function",
                                   {{"name", tool.name},
                                    {"description", tool.description},
                                    {"parameters", tooldecode::documented_parameters(tool)}}}});
      }
    }
    std::vector<TemplatePart> parts;
    guard([&] {
      jinja::context context(source_);
      const Json own{{"bos_token", begin_}, {"eos_token", end_}};
      jinja::global_from_json(context, common_json::parse(own.text()), false);
      jinja::global_from_json(context, common_json::parse(input.text()), true);
      jinja::runtime runtime(context);
      const auto text = jinja::runtime::gather_string_parts(runtime.execute(program_));
      for (const auto& part : text->as_string().parts) parts.push_back({part.val, part.is_input});
    });
    return parts;
  }

  static Json call_json(const std::string& id, const std::string& name, const Json& arguments) {
    return {
        {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
  }

 private:
  // Ids of nine letters and digits: the only ones that the templates of Mistral take.
  class CallIds {
   public:
    // Those of the messages that fit remain as they are.
    explicit CallIds(const std::vector<Message>& messages) {
      for (const Message& message : messages) {
        keep(message.id);
        for (const auto& [id, call] : message.calls) keep(id);
      }
    }

    // Another one each time for an empty id.
    [[nodiscard]] std::string of(const std::string& id) {
      const auto known = made_.find(id);
      if (known != made_.end() && !id.empty()) return known->second;
      std::string own;
      do {
        const std::string number = std::to_string(++count_);
        own = "call" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number;
      } while (used_.contains(own));
      used_.insert(own);
      return made_[id] = own;
    }

   private:
    void keep(const std::string& id) {
      const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
      if (id.size() != 9 || !std::ranges::all_of(id, is_plain)) return;
      made_[id] = id;
      used_.insert(id);
    }

    std::map<std::string, std::string> made_;
    std::set<std::string> used_;
    std::size_t count_ = 0;
  };

  // Calls that are text, from their first delimiter on. A word takes their place while the template
  // is rendered: its marks of what is input tell whole texts apart, not their parts.
  class WrittenCalls {
   public:
    explicit WrittenCalls(const std::vector<Message>& messages) : messages_(&messages) {
      while (std::ranges::any_of(messages, [&](const Message& message) {
        return message.content.find(word_) != std::string::npos;
      })) {
        word_ += 'x';
      }
    }

    [[nodiscard]] std::string content(const Message& message) const {
      const auto index        = static_cast<std::size_t>(&message - messages_->data());
      const auto [at, length] = range(message);
      return std::string(message.content).replace(at, length, word_ + std::to_string(index) + '.');
    }

    [[nodiscard]] std::vector<TemplatePart> put_into(const std::vector<TemplatePart>& parts) const {
      std::vector<TemplatePart> all;
      for (const TemplatePart& part : parts) {
        const std::string& text = part.text;
        std::size_t done        = 0;
        for (std::size_t at = 0; (at = text.find(word_, at)) != std::string::npos;) {
          at += word_.size();
          std::size_t index     = 0;
          const char* const end = text.data() + text.size();
          const char* const dot = std::from_chars(text.data() + at, end, index).ptr;
          if (dot == end || *dot != '.' || index >= messages_->size()) continue;  // a part of it
          all.push_back({text.substr(done, at - word_.size() - done), part.is_input});
          add((*messages_)[index], all);
          done = at = static_cast<std::size_t>(dot + 1 - text.data());
        }
        all.push_back({text.substr(done), part.is_input});
      }
      return all;
    }

   private:
    static TextRange range(const Message& message) {
      const std::size_t at  = message.delimiters.front().at;
      const std::size_t end = message.content.find_last_not_of(" \t\r\n") + 1;
      return {at, end - at};
    }

    static void add(const Message& message, std::vector<TemplatePart>& all) {
      const TextRange whole = range(message);
      std::size_t done      = whole.at;
      const auto add_input  = [&](std::size_t until) {
        if (until > done) all.push_back({message.content.substr(done, until - done), true});
      };
      for (const TextRange& delimiter : message.delimiters) {
        add_input(delimiter.at);
        all.push_back({message.content.substr(delimiter.at, delimiter.length), false});
        done = delimiter.at + delimiter.length;
      }
      add_input(whole.at + whole.length);
    }

    const std::vector<Message>* messages_;
    std::string word_ = "writtencalls";
  };

  static Json turn_of(const Message& message) {
    Json turn{{"role", message.role}, {"content", message.content}};
    if (!message.name.empty()) turn["name"] = message.name;
    return turn;
  }

  // Whether the template takes the result of a call, with the call and its id or behind a text, and
  // the turns that follow, which some templates count.
  [[nodiscard]] bool renders_results(bool has_calls) const {
    const std::string id = "call00001";
    Json answer{{"role", "assistant"}, {"content", "Hm."}};
    Json result{{"role", "tool"}, {"content", "1"}, {"name", "f"}};
    if (has_calls) {
      answer["tool_calls"]   = Json::array({call_json(id, "f", Json::object())});
      result["tool_call_id"] = id;
    }
    Json dialogue{{{"role", "user"}, {"content", "?"}},
                  std::move(answer),
                  std::move(result),
                  {{"role", "assistant"}, {"content", "B"}},
                  {{"role", "user"}, {"content", "C"}}};
    return text_of(std::move(dialogue)).has_value();
  }

  [[nodiscard]] bool renders_two_calls() const {
    const std::string ids[]{"call00001", "call00002"}, names[]{"f", "g"};
    const std::string argument = "of the second call";
    Json dialogue{{{"role", "user"}, {"content", "?"}}, {{"role", "assistant"}, {"content", ""}}};
    for (std::size_t i = 0; i < 2; ++i) {
      const Json arguments{{"a", i == 0 ? "of the first call" : argument}};
      dialogue[1]["tool_calls"].push_back(call_json(ids[i], names[i], arguments));
      dialogue.push_back(
          {{"role", "tool"}, {"content", "1"}, {"name", names[i]}, {"tool_call_id", ids[i]}});
    }
    const auto text = text_of(std::move(dialogue));
    return text && text->find(argument) != std::string::npos;
  }

  // Empty if the template refuses the messages.
  [[nodiscard]] std::optional<std::string> text_of(Json messages) const {
    try {
      std::string text;
      for (const TemplatePart& part : render(std::move(messages), {}, true)) text += part.text;
      return text;
    } catch (const tooldecode::Error&) {
      return std::nullopt;
    }
  }

  template <class Work>
  static void guard(const Work& work) {
    try {
      work();
    } catch (const std::exception& error) {
      throw tooldecode::Error(tooldecode::Errc::malformed_document, "chat template", error.what());
    }
  }

  std::string begin_, end_, source_;
  jinja::program program_;
  bool has_tools_ = false, has_system_ = false;
  bool needs_calls_ = false, takes_one_call_ = false;
  std::set<std::string> names_;
};

/// What the template itself writes behind the last input.
[[nodiscard]] inline std::string end_of_template(const std::vector<TemplatePart>& parts) {
  std::string text;
  const auto is_own = [](const TemplatePart& part) { return !part.is_input || part.text.empty(); };
  for (auto part = parts.rbegin(); part != parts.rend() && is_own(*part); ++part) {
    text.insert(0, part->text);
  }
  return text;
}

/// The format in which a template writes calls: the one whose text, as a message, makes the same
/// prompt as the call itself, up to white space. Empty if there is none.
[[nodiscard]] inline std::optional<std::string> find_format(const ChatTemplate& chat) {
  using tooldecode::ToolCall;
  const auto tools = tooldecode::ToolSet::parse(
      R"([{"name": "get_weather", "description": "Tells the weather.", "parameters": {"type": "object",
          "properties": {"city": {"type": "string"}}, "required": ["city"]}}])");
  const ToolCall call{"get_weather", Json{{"city", "Oslo"}}};
  const auto rendered = [&](Json answer) -> std::optional<std::string> {
    try {
      answer["role"] = "assistant";
      std::string text;
      Json dialogue{{{"role", "user"}, {"content", "How is it?"}}, std::move(answer)};
      for (const TemplatePart& part : chat.render(std::move(dialogue), tools, false)) {
        for (const char c : part.text) {
          if (c != ' ' && c != '\n' && c != '\t' && c != '\r') text += c;
        }
      }
      return text;
    } catch (const tooldecode::Error&) {
      return std::nullopt;  // the template does not know such a message
    }
  };
  // Mistral's templates take an id of nine letters and digits. Kimi K2's writes the id in place of
  // the name, so it is that of K2's own calls.
  std::vector<Json> written;
  for (const char* id : {"call00001", "functions.get_weather:0"}) {
    // Some templates expect arguments as an object, others as text.
    for (const Json& arguments : {call.arguments, Json(call.arguments.text())}) {
      written.push_back(ChatTemplate::call_json(id, call.name, arguments));
    }
  }
  for (const Json& one : written) {
    auto own = rendered({{"content", ""}, {"tool_calls", Json::array({one})}});
    if (!own || own == rendered({{"content", ""}})) continue;
    // A model need not write the id that a template adds.
    for (const std::string id : {",\"id\":\"call00001\"", "[CALL_ID]call00001"}) {
      if (const auto at = own->find(id); at != own->npos) own->erase(at, id.size());
    }
    const auto writes = [&](const Format& format) {
      return own == rendered({{"content", format.write(std::vector{call}, tools)}});
    };
    // The tokens of Hunyuan's checkpoints have a suffix.
    static constexpr std::string_view opening = "<tool_calls";
    if (const auto at = own->find(std::string(opening) + ':'); at != own->npos) {
      const std::size_t from   = at + opening.size();
      const std::string suffix = own->substr(from, own->find('>', from) - from);
      for (const char* family : {"hunyuan-3", "hunyuan-4"}) {
        const auto format = tooldecode::format_with_suffix(family + suffix);
        if (format && writes(*format)) return format->name;
      }
    }
    for (const Format& format : tooldecode::named_formats()) {
      if (!writes(format)) continue;
      // This model family writes the same calls in other ways too.
      const bool is_qwen_2_5 =
          format.name == "hermes" && chat.says("You are Qwen, created by Alibaba");
      return is_qwen_2_5 ? "qwen-2.5" : format.name;
    }
  }
  return std::nullopt;
}

/// The tokens of a rendered dialogue, encoded as one text. Input that contains names of control
/// tokens is encoded separately, as plain text.
///
/// \param is_start  the text has the spaces that the tokenizer adds to a new text
inline std::vector<tooldecode::TokenId> encode_parts(const tooldecode::Tokenizer& tokenizer,
                                                     const std::vector<TemplatePart>& parts,
                                                     bool is_start = true) {
  std::vector<tooldecode::TokenId> tokens;
  const auto encode = [&](const std::string& text, bool special) {
    return tokenizer.encode(
        text, {.add_space_prefix = is_start && tokens.empty(), .parse_special = special});
  };
  std::string whole;
  bool forges = false;
  for (const TemplatePart& part : parts) {
    whole += part.text;
    forges = forges || (part.is_input && encode(part.text, true) != encode(part.text, false));
  }
  if (!forges) return encode(whole, true);
  for (const TemplatePart& part : parts) {
    const auto more = encode(part.text, !part.is_input);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

/// The tokens of a prompt.
///
/// \param adds_begin  the model's begin token precedes them where the template does not write it
inline std::vector<tooldecode::TokenId> encode_prompt(const tooldecode::Tokenizer& tokenizer,
                                                      const std::vector<TemplatePart>& parts,
                                                      bool adds_begin) {
  auto tokens      = encode_parts(tokenizer, parts);
  const auto begin = tokenizer.vocabulary().begin_token();
  if (adds_begin && begin && (tokens.empty() || tokens.front() != *begin)) {
    tokens.insert(tokens.begin(), *begin);
  }
  return tokens;
}

}  // namespace program
