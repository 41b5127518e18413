/// \file
/// Assistant: a model with what belongs to it: its tokenizer, masks over it, and how it is prompted.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/formats.hpp>
#include <program/paths.hpp>
#include <program/prompt.hpp>

namespace program {

/// The tokens of a dialogue's prompt, after the tokenizer that it is asked with.
using Prompter = std::function<std::vector<tooldecode::TokenId>(
    const tooldecode::Tokenizer&, const tooldecode::ToolSet&, const Format&,
    const std::vector<Message>&)>;

/// A model that can be asked.
template <class M>
struct Assistant {
  Assistant(std::filesystem::path where, M loaded, tooldecode::Tokenizer read, Prompter prompter)
      : place(std::move(where)),
        model(std::move(loaded)),
        tokenizer(std::move(read)),
        masks(tokenizer.vocabulary()),
        prompter_(std::move(prompter)) {
    if (tokenizer.vocabulary().size() > model.vocabulary_size()) {
      throw tooldecode::Error(tooldecode::Errc::shape_mismatch, place.string(),
                              "the tokenizer has more tokens than the model has logits");
    }
  }

  [[nodiscard]] std::vector<tooldecode::TokenId> prompt(
      const tooldecode::ToolSet& tools, const Format& format,
      const std::vector<Message>& messages) const {
    return prompter_(tokenizer, tools, format, messages);
  }

  std::filesystem::path place;  ///< a directory or a file
  M model;
  tooldecode::Tokenizer tokenizer;
  tooldecode::VocabularyIndex masks;

 private:
  Prompter prompter_;
};

/// A model of a directory, in the library's own arithmetic, that knows the prompt of the embedded
/// one.
using EmbeddedAssistant = Assistant<tooldecode::LlamaModel>;

/// Reads config.json, model.safetensors and the tokenizer of a directory.
inline EmbeddedAssistant load_embedded(const std::filesystem::path& directory) {
  return {directory, tooldecode::LlamaModel::load(directory), tooldecode::load_tokenizer(directory),
          [](const tooldecode::Tokenizer& tokenizer, const tooldecode::ToolSet& tools,
             const Format& format, const std::vector<Message>& messages) {
            return make_prompt(tokenizer, tools, format.name, messages);
          }};
}

/// The folder of the data that comes with the program.
inline std::filesystem::path example_data(const char* relative) {
  return std::filesystem::path(data_folder) / relative;
}

}  // namespace program
