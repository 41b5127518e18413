/// \file
/// Loads a model of this library onto a GPU, as an assistant.
#pragma once

#include <filesystem>
#include <memory>

#include <program/assistant.hpp>
#include <program/models.hpp>

namespace program {

/// Reads a directory or a GGUF file of the kind of Llama or Qwen2. The model of a directory is
/// prompted as the embedded one, that of a GGUF file in plain text.
///
/// Error{invalid_option} if the program was built without CUDA; Error{device_failure} if there is
/// no GPU.
[[nodiscard]] std::shared_ptr<const Assistant> load_on_device(const std::filesystem::path& place,
                                                              const ModelOptions& options);

}  // namespace program
