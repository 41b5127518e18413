/// \file
/// Models that examples/models.sh has fetched.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <support/catch.hpp>

namespace tooldecode::test {

/// A model's file in the cache; nothing, and a warning, where it was not fetched.
inline std::optional<std::filesystem::path> cached_model(const std::string& file) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  auto cache = variable("TOOLDECODE_CACHE");
  if (cache.empty()) cache = variable("XDG_CACHE_HOME") / "tooldecode";
  if (cache.is_relative()) cache = variable("HOME") / ".cache" / "tooldecode";
  auto path = cache / "models" / file;
  if (std::filesystem::exists(path)) return path;
  WARN("SKIPPED: " << path.string() << " is not there, see examples/models.sh");
  return std::nullopt;
}

inline std::optional<std::filesystem::path> smollm2() {
  return cached_model("SmolLM2-135M-Instruct.Q4_1.gguf");
}

}  // namespace tooldecode::test
