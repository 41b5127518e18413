/// \file
/// The models that the program can be asked to use: a directory's, in the library's own arithmetic,
/// or a GGUF file's, by llama.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <program/assistant.hpp>

namespace program {

class Command;

/// Which model, and how it is run.
struct ModelOptions {
  std::string name = example_data("tiny").string();
  std::int32_t threads =
      static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::size_t context   = 4096;  ///< most tokens of all sequences
  std::size_t sequences = 64;    ///< at a time
  /// Examples in the prompt; without a number none where the model's template has a place for tools,
  /// and `usual_shots` where it has none.
  std::int64_t shots     = -1;
  std::string shots_from = example_data("shots.jsonl").string();
};

inline constexpr std::int64_t usual_shots = 2;

void add_model_options(Command& sub, ModelOptions& options);

/// The file of a model that examples/models.sh fetches; the name itself where it is none of them.
[[nodiscard]] std::filesystem::path model_file(const std::string& name);

/// Reads the model.
[[nodiscard]] std::shared_ptr<const Assistant> load_assistant(const ModelOptions& options);

}  // namespace program
