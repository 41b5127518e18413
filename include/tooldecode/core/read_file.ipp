/// \file
/// Definitions of read_file.hpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <system_error>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>

namespace tooldecode::core {

TOOLDECODE_INLINE std::string read_file(const std::filesystem::path& path) {
  std::error_code failure;
  std::ifstream file(path, std::ios::binary);
  if (!std::filesystem::is_regular_file(path, failure) || !file) {
    throw Error(Errc::file_unreadable, path.string(), "is not a file that can be read");
  }
  const auto size = std::filesystem::file_size(path, failure);
  std::string bytes(failure ? 0 : static_cast<std::size_t>(size), '\0');
  if (failure || !file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw Error(Errc::file_unreadable, path.string(), "ended while it was read");
  }
  return bytes;
}

}  // namespace tooldecode::core
