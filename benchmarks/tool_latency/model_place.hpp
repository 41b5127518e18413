/// \file
/// Where a model is that `tooldecode` knows by its name.
#pragma once

#include <filesystem>
#include <string>

namespace tool_latency {

/// The file or folder of what `--model` takes, or of the embedded model.
std::filesystem::path model_place(const std::string& model);

}  // namespace tool_latency
