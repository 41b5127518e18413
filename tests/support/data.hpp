/// \file
/// Finds and reads test data, plain or gzip.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/value_reader.hpp>

#include <program/paths.hpp>
#include <support/catch.hpp>
#include <zlib.h>

namespace tooldecode::test {

inline std::filesystem::path source_root() {
  return std::filesystem::path(program::data_folder).parent_path().parent_path();
}

/// A file of tests/data, which is part of the repository.
inline std::filesystem::path own_data(std::string_view relative) {
  return source_root() / "tests" / "data" / relative;
}

/// A file of examples/data, which is part of the repository.
inline std::filesystem::path example_data(std::string_view relative) {
  return source_root() / "examples" / "data" / relative;
}

/// A file of the larger collections outside the repository: under the environment variable
/// TOOLDECODE_SHARED_DATA if set, else under shared/data in the source tree.
inline std::optional<std::filesystem::path> shared_data(std::string_view relative) {
  const char* named = std::getenv("TOOLDECODE_SHARED_DATA");
  const auto root =
      named != nullptr ? std::filesystem::path(named) : source_root() / ".." / "shared" / "data";
  auto path = root / relative;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

/// The whole file, decompressed if it is gzip.
inline std::string read_text(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16);
  int count = 0;
  while ((count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (count < 0) throw std::runtime_error(path.string() + ": cannot be inflated");
  return text;
}

/// One JSON value per non-empty line.
inline std::vector<JsonValue> read_jsonl(const std::filesystem::path& path) {
  std::vector<JsonValue> rows;
  std::istringstream lines(read_text(path));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) rows.push_back(text::parse_json_file(line));
  }
  return rows;
}

}  // namespace tooldecode::test

/// Declares `variable` as the path of a shared file. Without it, reports on stderr which test is
/// skipped and returns from the test; with TOOLDECODE_REQUIRE_DATA set, the test fails instead.
#define TOOLDECODE_REQUIRE_SHARED(variable, relative)                               \
  const auto variable##_if_present = ::tooldecode::test::shared_data(relative);     \
  if (!variable##_if_present) {                                                     \
    std::cerr << "SKIPPED: " << ::Catch::getResultCapture().getCurrentTestName()    \
              << " needs shared data " << (relative) << '\n';                       \
    if (std::getenv("TOOLDECODE_REQUIRE_DATA") != nullptr) FAIL("data is missing"); \
    return;                                                                         \
  }                                                                                 \
  const std::filesystem::path variable = *variable##_if_present
