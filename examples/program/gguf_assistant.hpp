/// \file
/// A GGUF file's model, run by llama.cpp, as an assistant.
#pragma once

#include <filesystem>

#include <tooldecode/adapters/llama_cpp_model.hpp>

#include <program/model_assistant.hpp>
#include <program/shots.hpp>

namespace program {

using GgufAssistant = ModelAssistant<tooldecode::LlamaCppModel>;
extern template class ModelAssistant<tooldecode::LlamaCppModel>;

/// Reads a GGUF file. A model that has a chat template is asked by it, with the tools where the
/// template has a place for them and there are no examples; a base model is asked in plain text.
/// Examples stand in prompts with tools alone.
///
/// \param shots      examples where the template has a place for tools
/// \param otherwise  and where it has none
[[nodiscard]] GgufAssistant load_gguf(const std::filesystem::path& file,
                                      const tooldecode::LlamaCppOptions& options, Shots shots,
                                      Shots otherwise);

}  // namespace program
