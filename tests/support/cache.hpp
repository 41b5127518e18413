/// \file
/// Files fetched for examples and benchmarks; tests use those that are present.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>
#include <system_error>

#include <program/cache_folder.hpp>
#include <support/catch.hpp>

namespace tooldecode::test {

inline std::optional<std::filesystem::path> if_present(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::exists(path, failure) ? std::optional(path) : std::nullopt;
}

inline std::optional<std::filesystem::path> cached_model(std::string_view name) {
  return if_present(program::cache_folder() / "models" / name);
}

/// The folder `models` of llama.cpp, with vocabularies in GGUF files: the environment variable
/// TOOLDECODE_LLAMA_CPP if set, else the last fetched version.
inline std::optional<std::filesystem::path> llama_cpp_models() {
  if (const char* named = std::getenv("TOOLDECODE_LLAMA_CPP")) return if_present(named);
  std::optional<std::filesystem::path> found;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(program::cache_folder(), failure)) {
    if (!entry.path().filename().string().starts_with("llama.cpp-")) continue;
    if (const auto models = if_present(entry.path() / "share" / "models"))
      found = std::max(found, models);
  }
  return found;
}

/// Reports on stderr which test is skipped and what is missing.
inline void report_skipped(std::string_view needed) {
  std::cerr << "SKIPPED: " << ::Catch::getResultCapture().getCurrentTestName() << " needs "
            << needed << '\n';
}

}  // namespace tooldecode::test
