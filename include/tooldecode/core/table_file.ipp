/// \file
/// Definitions of table_file.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/table_file.hpp>

namespace tooldecode::core {

TOOLDECODE_INLINE void TableReader::fail(std::string_view what) const {
  throw Error(Errc::malformed_file, place_, what);
}

TOOLDECODE_INLINE const char* TableReader::take(std::size_t size) {
  require(size <= rest_.size(), "ends inside a number");
  const char* const begin = rest_.data();
  rest_.remove_prefix(size);
  return begin;
}

TOOLDECODE_INLINE std::uint64_t checksum(std::string_view bytes) noexcept {
  // Four chains, because each step of one waits for the step before it.
  std::array<std::uint64_t, 4> chains{1, 2, 3, 4};
  const auto word = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  std::size_t at = 0;
  for (; bytes.size() - at >= 32; at += 32) {
    for (std::size_t i = 0; i < 4; ++i) chains[i] = hash_combine(chains[i], word(at + 8 * i, 8));
  }
  for (; bytes.size() - at >= 8; at += 8) chains[0] = hash_combine(chains[0], word(at, 8));
  if (at != bytes.size()) chains[0] = hash_combine(chains[0], word(at, bytes.size() - at));
  std::uint64_t sum = bytes.size();
  for (const std::uint64_t chain : chains) sum = hash_combine(sum, chain);
  return sum;
}

}  // namespace tooldecode::core
