#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <ios>
#include <limits>
#include <system_error>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>

namespace tooldecode::core {

TOOLDECODE_INLINE std::string read_file(const std::filesystem::path& path) {
  return read_file_head(path, std::numeric_limits<std::size_t>::max());
}

TOOLDECODE_INLINE std::string read_file_head(const std::filesystem::path& path, std::size_t most) {
  std::error_code failure;
  std::ifstream file(path, std::ios::binary);
  const bool is_file = std::filesystem::is_regular_file(path, failure) && file;
  const auto size    = is_file ? std::filesystem::file_size(path, failure) : 0;
  if (!is_file || failure) {
    throw Error(Errc::file_unreadable, path.string(), "is not a file that can be read");
  }
  std::string bytes(static_cast<std::size_t>(std::min<std::uintmax_t>(size, most)), '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw Error(Errc::file_unreadable, path.string(), "ended while it was read");
  }
  return bytes;
}

}  // namespace tooldecode::core
