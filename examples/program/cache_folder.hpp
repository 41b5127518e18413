/// \file
/// cache_folder: the folder of downloaded models and engines.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace program {

/// The folder that examples/models.sh and examples/llama_cpp.sh download to.
inline std::filesystem::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto own = variable("TOOLDECODE_CACHE"); !own.empty()) return own;
  if (const auto all = variable("XDG_CACHE_HOME"); !all.empty()) return all / "tooldecode";
  return variable("HOME") / ".cache" / "tooldecode";
}

}  // namespace program
