/// \file
/// read_file: the bytes of a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <ios>
#include <string>

#include <tooldecode/core/error.hpp>

namespace tooldecode::core {

/// The bytes of a regular file, in one piece.
///
/// \par Complexity  O(size of the file)
/// \par Errors      Error{file_unreadable} with the path
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace tooldecode::core

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/read_file.ipp>
#endif
