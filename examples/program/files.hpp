/// \file
/// Reads files for the program, gzip files inflated, with typed errors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace program {

/// Default limit for inflated files; a compressed file does not reveal its size.
inline constexpr std::size_t max_inflated_bytes = std::size_t{256} << 20;

/// Reads a whole file. Error{file_unreadable} names it; Error{limit_exceeded} if it inflates to
/// more bytes than allowed.
std::string read_file(const std::filesystem::path& path,
                      std::size_t max_inflated = max_inflated_bytes);

/// Reads a tokenizer: a directory, or a file of any kind that load_tokenizer takes, or one inflated.
tooldecode::Tokenizer open_tokenizer(const std::filesystem::path& path,
                                     std::size_t max_inflated = max_inflated_bytes);

}  // namespace program
