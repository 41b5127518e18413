// Compiled only if the program is built with llama.cpp.
#ifdef TOOLDECODE_PROGRAM_LLAMA_CPP
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/llama_model.hpp>
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

std::string behind(const std::string& text, const std::string& part) {
  return text.substr(text.find(part) + part.size());
}

}  // namespace

ModelAssistant<tooldecode::LlamaCppModel> load_gguf(const std::filesystem::path& file,
                                                    const tooldecode::LlamaCppOptions& options,
                                                    Shots shots, Shots otherwise) {
  using tooldecode::TokenId;
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
  // Finds what a template writes after an answer by rendering one.
  auto results = [chat, by_template](const tooldecode::Tokenizer& tokenizer,
                                     std::span<const Message> of_calls,
                                     const TemplateVariables& variables) {
    const std::string answer = "(the answer)";
    std::vector<Message> turns{{"user", "?"}, {"assistant", answer}};
    if (by_template) {
      turns.insert(turns.end(), of_calls.begin(), of_calls.end());
    } else {
      turns.push_back({"user", results_text(of_calls)});
    }
    auto parts = chat->render(turns, {}, variables);
    while (!parts.empty() && parts.front().text.find(answer) == std::string::npos)
      parts.erase(parts.begin());
    if (parts.empty()) {
      throw tooldecode::Error(tooldecode::Errc::malformed_document, "chat template",
                              "leaves out what the assistant said");
    }
    parts.front() = {behind(parts.front().text, answer), false};
    return WrittenPrompt{encode_parts(tokenizer, parts, false), end_of_template(parts)};
  };
  return {file, std::move(model), tooldecode::load_tokenizer(file),
          Prompter{std::move(dialogue), std::move(results),
                   [chat] { return find_format(*chat).value_or(""); }, has_tools,
                   [chat](const std::string& variable) { return chat->takes(variable); },
                   adds_begin, [chat](std::string_view text) { return chat->says(text); }}};
}

}  // namespace program
#endif
