/// \file
/// Finds a model that `tooldecode` knows by name.
#pragma once

#include <filesystem>
#include <string>

namespace tool_latency {

/// The file or folder of an argument of `--model`, or of the embedded model.
std::filesystem::path model_place(const std::string& model);

}  // namespace tool_latency
