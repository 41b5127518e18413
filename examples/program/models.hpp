/// \file
/// The models that the program can use: those of a directory, run by this library, and GGUF files,
/// run by llama.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <program/assistant.hpp>
#include <program/shots.hpp>

namespace program {

class Command;

/// Which model to use, and how to run it.
struct ModelOptions {
  std::string name = example_data("tiny").string();
  std::int32_t threads =
      static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::int32_t gpu_layers = 0;  ///< of a GGUF file's model, that llama.cpp has on a GPU; -1: all
  bool gives_features     = false;  ///< whether drafts read states between layers that are on a GPU
  std::size_t context     = 4096;   ///< most tokens of all sequences together
  std::size_t sequences   = 64;     ///< at the same time
  /// Examples in the prompt. Negative: none if the model's template supports tools, else
  /// `usual_shots`.
  std::int64_t shots     = -1;
  std::string shots_from = example_data("shots.jsonl").string();
  /// "cpu", or "cuda" for a GPU.
  std::string device = "cpu";
};

inline constexpr std::int64_t usual_shots = 2;

void add_model_options(Command& sub, ModelOptions& options);

/// The file of a model that examples/models.sh downloads; the name itself if it is not one of them.
[[nodiscard]] std::filesystem::path model_file(const std::string& name);

/// The examples of a model whose template has no place for tools.
[[nodiscard]] Shots shots_of(const ModelOptions& options);

[[nodiscard]] std::shared_ptr<const Assistant> load_assistant(const ModelOptions& options);

}  // namespace program
