/// \file
/// Reading of files for the program: whole, inflated where they are gzip, with typed errors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include <tooldecode/core/error.hpp>

namespace program {

/// What a compressed file may become, unless the user says otherwise: it tells nothing of its size.
inline constexpr std::size_t max_inflated_bytes = std::size_t{256} << 20;

/// The whole file; Error{file_unreadable} names it, Error{limit_exceeded} one that inflates to more
/// bytes than it may.
std::string read_file(const std::filesystem::path& path,
                      std::size_t max_inflated = max_inflated_bytes);

}  // namespace program
