/// \file
/// Assistant: a model with what belongs to it: its tokenizer, masks over it, and how it is prompted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/formats.hpp>
#include <program/paths.hpp>
#include <program/prompt.hpp>

namespace program {

/// How a model is asked. Each member has a tokenizer first, that of the assistant.
struct Prompter {
  /// The tokens of a dialogue's prompt.
  std::function<std::vector<tooldecode::TokenId>(const tooldecode::Tokenizer&,
                                                 const tooldecode::ToolSet&, const Format&,
                                                 const std::vector<Message>&)>
      dialogue;
  /// The tokens between the last of a turn with calls and the first of the turn that reads their
  /// results: a turn's prompt, its tokens and these are the prompt of the dialogue with the results,
  /// where the turn's tokens are those of its text.
  std::function<std::vector<tooldecode::TokenId>(const tooldecode::Tokenizer&,
                                                 std::span<const Message> results)>
      results;
};

/// What belongs to a model, whatever its kind.
class AssistantBase {
 public:
  AssistantBase(std::filesystem::path where, tooldecode::Tokenizer read, Prompter prompter)
      : place(std::move(where)),
        tokenizer(std::move(read)),
        masks(tokenizer.vocabulary()),
        prompter_(std::move(prompter)) {}

  [[nodiscard]] std::vector<tooldecode::TokenId> prompt(
      const tooldecode::ToolSet& tools, const Format& format,
      const std::vector<Message>& messages) const {
    return prompter_.dialogue(tokenizer, tools, format, messages);
  }
  [[nodiscard]] std::vector<tooldecode::TokenId> result_tokens(
      std::span<const tooldecode::ToolCall> calls,
      std::span<const tooldecode::ToolResult> results) const {
    std::vector<Message> lines;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      lines.push_back({"tool", results[i].output, calls[i].name});
    }
    return prompter_.results(tokenizer, lines);
  }

  std::filesystem::path place;  ///< a directory or a file
  tooldecode::Tokenizer tokenizer;
  tooldecode::VocabularyIndex masks;

 private:
  Prompter prompter_;
};

/// A model that can be asked.
template <class M>
struct Assistant : AssistantBase {
  Assistant(std::filesystem::path where, M loaded, tooldecode::Tokenizer read, Prompter prompter)
      : AssistantBase(std::move(where), std::move(read), std::move(prompter)),
        model(std::move(loaded)) {
    if (tokenizer.vocabulary().size() > model.vocabulary_size()) {
      throw tooldecode::Error(tooldecode::Errc::shape_mismatch, place.string(),
                              "the tokenizer has more tokens than the model has logits");
    }
  }

  M model;
};

/// A model of a directory, in the library's own arithmetic, that knows the prompt of the embedded
/// one.
using EmbeddedAssistant = Assistant<tooldecode::LlamaModel>;

/// Reads config.json, model.safetensors and the tokenizer of a directory.
inline EmbeddedAssistant load_embedded(const std::filesystem::path& directory) {
  return {directory,
          tooldecode::LlamaModel::load(directory),
          tooldecode::load_tokenizer(directory),
          {.dialogue =
               [](const tooldecode::Tokenizer& tokenizer, const tooldecode::ToolSet& tools,
                  const Format& format, const std::vector<Message>& messages) {
                 return make_prompt(tokenizer, tools, format.name, messages);
               },
           .results = make_results_prompt}};
}

/// The folder of the data that comes with the program.
inline std::filesystem::path example_data(const char* relative) {
  return std::filesystem::path(data_folder) / relative;
}

}  // namespace program
