/// \file
/// The models that the program can be asked to use: a directory's, in the library's own arithmetic,
/// or a GGUF file's, by llama.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <program/assistant.hpp>

namespace program {

class Command;

/// Which model, and how it is run.
struct ModelOptions {
  std::string name       = example_data("tiny").string();
  std::int32_t threads   = 1;
  std::size_t context    = 4096;  ///< most tokens of all sequences
  std::size_t sequences  = 64;    ///< at a time
  std::size_t shots      = 2;
  std::string shots_from = example_data("shots.jsonl").string();
};

void add_model_options(Command& sub, ModelOptions& options);

/// The file of a model that examples/models.sh fetches; the name itself where it is none of them.
[[nodiscard]] std::filesystem::path model_file(const std::string& name);

/// Reads the model.
[[nodiscard]] std::shared_ptr<const Assistant> load_assistant(const ModelOptions& options);

}  // namespace program
