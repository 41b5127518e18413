/// \file
/// Definitions of table_file.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ios>
#include <istream>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/table_file.hpp>

namespace tooldecode::core {

TOOLDECODE_INLINE void TableReader::fail(std::string_view what) const {
  throw Error(Errc::malformed_file, place_, what);
}

TOOLDECODE_INLINE void TableReader::read(void* to, std::size_t size) {
  if (size == 0) return;
  require(size <= left_, "ends inside a number");
  left_ -= size;
  if (file_ != nullptr) {
    file_->read(static_cast<char*>(to), static_cast<std::streamsize>(size));
    require(!file_->fail(), "ended while it was read");
  } else {
    std::memcpy(to, rest_, size);
    rest_ += size;
  }
  sum_ = hash_combine(sum_, core::checksum({static_cast<const char*>(to), size}));
}

TOOLDECODE_INLINE void TableWriter::append(const void* from, std::size_t size) {
  if (size == 0) return;
  const std::string_view bytes(static_cast<const char*>(from), size);
  bytes_ += bytes;
  sum_ = hash_combine(sum_, core::checksum(bytes));
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
