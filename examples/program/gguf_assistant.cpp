// Compiled only if the program is built with llama.cpp.
#ifdef TOOLDECODE_PROGRAM_LLAMA_CPP
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <llama.h>
#include <program/chat_template.hpp>
#include <program/gguf_assistant.hpp>
#include <program/plain_prompter.hpp>

namespace program {

template <>
DraftTarget GgufAssistant::draft_target(bool with_features) const {
  using namespace tooldecode;
  struct Target {
    LlamaCppModel model;
    LlamaModel ends;
  };
  const auto target = std::make_shared<const Target>(
      Target{with_features ? model.with_features(eagle3_layers(model.layer_count())) : model,
             LlamaModel::load_ends(place)});
  return {target->model, {target, &target->ends}};
}

template class ModelAssistant<tooldecode::LlamaCppModel>;

namespace {

// What the assistant says in a dialogue that is rendered to find what a template writes behind it.
const std::string fake_answer = "(the answer)";

std::vector<TemplatePart> behind_answer(std::vector<TemplatePart> parts) {
  while (!parts.empty() && parts.front().text.find(fake_answer) == std::string::npos) {
    parts.erase(parts.begin());
  }
  if (parts.empty()) {
    throw tooldecode::Error(tooldecode::Errc::malformed_document, "chat template",
                            "leaves out what the assistant said");
  }
  const std::string& text = parts.front().text;
  parts.front()           = {text.substr(text.find(fake_answer) + fake_answer.size()), false};
  return parts;
}

std::vector<TemplatePart> behind_text(const ChatTemplate& chat, bool by_template,
                                      std::span<const Message> of_calls,
                                      const TemplateVariables& variables) {
  std::vector<Message> turns{{"user", "?"}, {"assistant", fake_answer}};
  if (by_template) {
    turns.insert(turns.end(), of_calls.begin(), of_calls.end());
  } else {
    turns.push_back({"user", results_text(of_calls)});
  }
  return behind_answer(chat.render(turns, {}, variables));
}

// As behind_text, with the calls in place of a text: the turn ends with an end token behind them, or
// where the results begin. Empty if the template does not show that.
std::optional<std::vector<TemplatePart>> behind_calls(const ChatTemplate& chat,
                                                      const tooldecode::Vocabulary& vocabulary,
                                                      std::span<const Message> of_calls,
                                                      const TemplateVariables& variables) {
  Message turn{"assistant", ""};
  for (const Message& result : of_calls) {
    turn.calls.insert(turn.calls.end(), result.calls.begin(), result.calls.end());
  }
  if (turn.calls.empty()) return std::nullopt;
  // Where each call is a message, the first ends the turn: else its result would be left out.
  auto& last            = chat.takes_one_call() ? turn.calls.front() : turn.calls.back();
  last.second.arguments = Json{{"a", fake_answer}};
  if (!chat.takes_one_call()) {
    for (std::size_t i = 0; i + 1 < turn.calls.size(); ++i) {
      turn.calls[i].second.arguments = Json::object();
    }
  }
  Message alone = turn;
  if (chat.takes_one_call()) alone.calls.resize(1);
  const std::vector<Message> without{{"user", "?"}, std::move(alone)};
  std::vector<Message> turns{{"user", "?"}, std::move(turn)};
  turns.insert(turns.end(), of_calls.begin(), of_calls.end());
  try {
    std::string ending;
    for (const auto& part : behind_answer(chat.render(without, {}, variables, false))) {
      ending += part.text;
    }
    auto parts = behind_answer(chat.render(turns, {}, variables));
    std::string whole;
    for (const TemplatePart& part : parts) whole += part.text;
    if (!whole.starts_with(ending)) return std::nullopt;
    std::size_t cut = ending.size();
    for (const tooldecode::TokenId id : vocabulary.end_tokens()) {
      const std::string_view name = vocabulary.name(id);
      if (!name.empty()) cut = std::min(cut, ending.find(name));
    }
    while (cut >= parts.front().text.size() && parts.size() > 1) {
      cut -= parts.front().text.size();
      parts.erase(parts.begin());
    }
    parts.front().text.erase(0, cut);
    return parts;
  } catch (const tooldecode::Error&) {
    return std::nullopt;
  }
}

}  // namespace

ModelAssistant<tooldecode::LlamaCppModel> load_gguf(const std::filesystem::path& file,
                                                    const tooldecode::LlamaCppOptions& options,
                                                    Shots shots, Shots otherwise) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::cerr << text;
      },
      nullptr);
  auto model      = tooldecode::LlamaCppModel::load(file, options);
  const auto name = [&](llama_token token) {
    return std::string(token < 0 ? "" : llama_vocab_get_text(model.vocab(), token));
  };
  const char* source = llama_model_chat_template(model.model(), nullptr);
  std::shared_ptr<const ChatTemplate> chat;
  if (source != nullptr) {
    chat = std::make_shared<const ChatTemplate>(source, name(llama_vocab_bos(model.vocab())),
                                                name(llama_vocab_eos(model.vocab())));
  }
  const bool adds_begin = llama_vocab_get_add_bos(model.vocab());
  if (!chat) {
    Prompter prompter   = plain_prompter(std::move(otherwise));
    prompter.adds_begin = adds_begin;
    return {file, std::move(model), tooldecode::load_tokenizer(file), std::move(prompter)};
  }
  const bool has_tools = chat->has_tools();
  if (!has_tools) shots = std::move(otherwise);
  const bool by_template = has_tools && shots.rows.empty();
  auto dialogue          = [chat, by_template, adds_begin, shots = std::move(shots)](
                      const tooldecode::Tokenizer& tokenizer, const tooldecode::ToolSet& tools,
                      const Format& format, const std::vector<Message>& messages,
                      const TemplateVariables& variables) {
    const bool as_text = !by_template && !tools.empty();
    auto turns         = as_text ? turns_with_tools(tools, format, shots, messages) : messages;
    if (as_text) {
      for (Message& turn : turns) turn.calls.clear();
    }
    if (!chat->has_system()) turns = without_system(std::move(turns));
    const auto shown = by_template ? tools : tooldecode::ToolSet();
    const auto parts = chat->render(turns, shown, variables);
    return WrittenPrompt{encode_prompt(tokenizer, parts, adds_begin), end_of_template(parts)};
  };
  auto results = [chat, by_template](const tooldecode::Tokenizer& tokenizer,
                                     std::span<const Message> of_calls,
                                     const TemplateVariables& variables) {
    std::optional<std::vector<TemplatePart>> parts;
    if (by_template && chat->needs_calls()) {
      parts = behind_calls(*chat, tokenizer.vocabulary(), of_calls, variables);
    }
    if (!parts) parts = behind_text(*chat, by_template, of_calls, variables);
    return WrittenPrompt{encode_parts(tokenizer, *parts, false), end_of_template(*parts)};
  };
  return {file, std::move(model), tooldecode::load_tokenizer(file),
          Prompter{std::move(dialogue), std::move(results),
                   [chat] { return find_format(*chat).value_or(""); }, has_tools,
                   [chat](const std::string& variable) { return chat->takes(variable); },
                   adds_begin, [chat](std::string_view text) { return chat->says(text); }}};
}

}  // namespace program
#endif
