/// \file
/// Vocabularies of models, read by llama.cpp without their weights.
#pragma once

#include <filesystem>
#include <memory>

#include <llama.h>
#include <support/cache.hpp>
#include <support/quiet_llama_cpp.hpp>

namespace tooldecode::test {

struct FreeLlamaCpp {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using LlamaCppVocabulary = std::unique_ptr<llama_model, FreeLlamaCpp>;
using LlamaCppSampler    = std::unique_ptr<llama_sampler, FreeLlamaCpp>;

/// Null if llama.cpp cannot read the file.
inline LlamaCppVocabulary read_llama_cpp_vocabulary(const std::filesystem::path& file) {
  auto parameters       = llama_model_default_params();
  parameters.vocab_only = true;
  return LlamaCppVocabulary(llama_model_load_from_file(file.c_str(), parameters));
}

}  // namespace tooldecode::test
