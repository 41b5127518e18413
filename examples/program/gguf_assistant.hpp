/// \file
/// Loads a GGUF file's model, run by llama.cpp, as an assistant.
#pragma once

#include <filesystem>

#include <tooldecode/adapters/llama_cpp_model.hpp>

#include <program/model_assistant.hpp>
#include <program/shots.hpp>

namespace program {

using GgufAssistant = ModelAssistant<tooldecode::LlamaCppModel>;
template <>
DraftTarget GgufAssistant::draft_target(bool with_features) const;
extern template class ModelAssistant<tooldecode::LlamaCppModel>;

/// Reads a GGUF file. A model with a chat template is prompted by it, with tools in the template if
/// it supports them and there are no examples; a base model is prompted in plain text. Only prompts
/// with tools contain examples.
///
/// \param shots      examples if the template supports tools
/// \param otherwise  examples if it does not
[[nodiscard]] GgufAssistant load_gguf(const std::filesystem::path& file,
                                      const tooldecode::LlamaCppOptions& options, Shots shots,
                                      Shots otherwise);

}  // namespace program
