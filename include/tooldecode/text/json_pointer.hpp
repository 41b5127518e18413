/// \file
/// JSON pointers (RFC 6901): how they are written, split and followed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// Appends a key to a JSON pointer: a slash and the escaped key.
[[nodiscard]] std::string extend_pointer(std::string pointer, std::string_view key);

/// The keys of a JSON pointer; nullopt if it neither begins with a slash nor is empty, and if a
/// tilde stands before another character than 0 and 1.
[[nodiscard]] std::optional<std::vector<std::string>> pointer_keys(std::string_view pointer);

/// The index that a key of a JSON pointer means in an array; nullopt if the array has no such item.
[[nodiscard]] std::optional<std::size_t> item_index(std::string_view key, std::size_t size);

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/json_pointer.ipp>
#endif
