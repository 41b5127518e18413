/// \file
/// read_file: reads a whole file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace tooldecode::core {

/// Reads a regular file into memory.
///
/// \par Complexity  O(size of the file)
/// \par Errors      Error{file_unreadable} with the path
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Reads the first bytes of a regular file, all of a shorter one.
///
/// \par Complexity  O(most)
/// \par Errors      as read_file
[[nodiscard]] std::string read_file_head(const std::filesystem::path& path, std::size_t most);

}  // namespace tooldecode::core

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/read_file.ipp>
#endif
